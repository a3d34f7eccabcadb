"""Calls, their outcomes and fences; the capture table and its functions; history, log and reference index."""

from __future__ import annotations

from alembic import op
from content_store.schema.ddl import system_tables_statements
from service_kit.idempotency import idempotency_ddl
from service_kit.outbox import outbox_ddl

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_DEFINER = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

# xid8 alone would be ambiguous after a dump and restore into a new cluster; with the start of the transaction it is not.
_TABLES = (
    """
    CREATE TABLE public.run_fence (
      run_id uuid PRIMARY KEY,
      epoch bigint NOT NULL,
      updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
    CREATE TABLE public.call_outcome (
      call_id uuid PRIMARY KEY,
      run_id uuid NOT NULL,
      epoch bigint NOT NULL,
      request_hash text NOT NULL,
      verdict text CHECK (verdict IN ('committed', 'rolled_back')),
      judged integer,
      taken integer NOT NULL DEFAULT 0,
      result jsonb,
      transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
      begun_at timestamptz NOT NULL DEFAULT transaction_timestamp(),
      created_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "CREATE INDEX call_outcome_transaction_idx ON public.call_outcome (transaction_id)",
    "CREATE INDEX call_outcome_run_idx ON public.call_outcome (run_id)",
    "CREATE SCHEMA capture",
    """
    CREATE TYPE capture.identity AS (
      pid bigint, language bigint, parent bigint, source bigint,
      workspace bigint, live_uid bigint, version_state bigint, deleted boolean, pointers jsonb
    )
    """,
    """
    CREATE TABLE capture.captured_row (
      id bigint GENERATED ALWAYS AS IDENTITY,
      transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
      begun_at timestamptz NOT NULL DEFAULT transaction_timestamp(),
      table_id oid NOT NULL,
      operation "char" NOT NULL,
      uid bigint,
      before capture.identity,
      after capture.identity,
      other_changed boolean NOT NULL,
      sorting_changed boolean NOT NULL,
      uid_local bigint,
      uid_foreign bigint,
      tablenames text,
      fieldname text
    ) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_threshold = 100000)
    """,
    "CREATE INDEX captured_row_transaction_idx ON capture.captured_row (transaction_id)",
)

_ROW_COLUMNS = """
  captured.id, target.relname::text, captured.operation::text, captured.uid,
  (captured.before).pid, (captured.before).language, (captured.before).parent, (captured.before).source,
  (captured.before).workspace, (captured.before).live_uid, (captured.before).version_state,
  (captured.before).deleted, (captured.before).pointers,
  (captured.after).pid, (captured.after).language, (captured.after).parent, (captured.after).source,
  (captured.after).workspace, (captured.after).live_uid, (captured.after).version_state,
  (captured.after).deleted, (captured.after).pointers,
  captured.other_changed, captured.sorting_changed,
  captured.uid_local, captured.uid_foreign, captured.tablenames, captured.fieldname,
  captured.transaction_id::text::bigint
"""

_ROW_TYPE = """
  id bigint, table_name text, operation text, uid bigint,
  before_pid bigint, before_language bigint, before_parent bigint, before_source bigint,
  before_workspace bigint, before_live_uid bigint, before_version_state bigint,
  before_deleted boolean, before_pointers jsonb,
  after_pid bigint, after_language bigint, after_parent bigint, after_source bigint,
  after_workspace bigint, after_live_uid bigint, after_version_state bigint,
  after_deleted boolean, after_pointers jsonb,
  other_changed boolean, sorting_changed boolean,
  uid_local bigint, uid_foreign bigint, tablenames text, fieldname text,
  transaction_id bigint
"""

_FUNCTIONS = (
    # Rows are counted on the outcome row of the running transaction whatever the argument says: whoever takes them
    # first cannot hide them from the verdict.
    f"""
    CREATE FUNCTION public.capture_take(call uuid DEFAULT NULL) RETURNS TABLE ({_ROW_TYPE}) {_DEFINER} AS $$
    #variable_conflict use_column
    BEGIN
      IF call IS NOT NULL AND NOT EXISTS (
          SELECT FROM public.call_outcome AS outcome
           WHERE outcome.call_id = call AND outcome.transaction_id = pg_current_xact_id_if_assigned()
             AND outcome.begun_at = transaction_timestamp()) THEN
        RAISE EXCEPTION 'this transaction has no outcome row of call %', call USING ERRCODE = 'RM006';
      END IF;
      RETURN QUERY
      WITH gone AS (
        DELETE FROM capture.captured_row AS c
         WHERE c.transaction_id = pg_current_xact_id_if_assigned() AND c.begun_at = transaction_timestamp()
        RETURNING c.*
      ), counted AS (
        UPDATE public.call_outcome AS outcome SET taken = outcome.taken + (SELECT count(*) FROM gone)
         WHERE outcome.transaction_id = pg_current_xact_id_if_assigned()
           AND outcome.begun_at = transaction_timestamp()
      )
      SELECT {_ROW_COLUMNS}
        FROM gone AS captured JOIN pg_class AS target ON target.oid = captured.table_id
       ORDER BY captured.id;
    END
    $$
    """,
    # Rows of finished transactions are all that another snapshot can see; locked ones belong to a sweeper beside us.
    f"""
    CREATE FUNCTION public.capture_sweep(older_than interval, most integer)
    RETURNS TABLE ({_ROW_TYPE}, begun_at timestamptz) {_DEFINER} AS $$
    #variable_conflict use_column
    BEGIN
      RETURN QUERY
      WITH old AS (
        SELECT c.id, c.transaction_id FROM capture.captured_row AS c
         WHERE c.begun_at < clock_timestamp() - older_than
           AND c.transaction_id IS DISTINCT FROM pg_current_xact_id_if_assigned()
         ORDER BY c.id LIMIT most FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM capture.captured_row AS c USING old
         WHERE c.id = old.id AND c.transaction_id = old.transaction_id RETURNING c.*
      )
      SELECT {_ROW_COLUMNS}, captured.begun_at
        FROM gone AS captured JOIN pg_class AS target ON target.oid = captured.table_id
       ORDER BY captured.id;
    END
    $$
    """,
    f"""
    CREATE FUNCTION capture.require_verdict() RETURNS trigger {_DEFINER} AS $$
    DECLARE
      outcome public.call_outcome%ROWTYPE;
    BEGIN
      SELECT * INTO outcome FROM public.call_outcome WHERE call_id = NEW.call_id;
      IF NOT FOUND OR outcome.verdict IS NULL THEN
        RAISE EXCEPTION 'call % has no verdict', NEW.call_id USING ERRCODE = 'RM001';
      END IF;
      IF outcome.judged IS DISTINCT FROM outcome.taken OR (outcome.verdict <> 'committed' AND outcome.taken > 0) THEN
        RAISE EXCEPTION 'the verdict of call % covers % of % rows', NEW.call_id, outcome.judged, outcome.taken
          USING ERRCODE = 'RM002';
      END IF;
      IF EXISTS (SELECT FROM capture.captured_row AS c
                  WHERE c.transaction_id = pg_current_xact_id_if_assigned()
                    AND c.begun_at = transaction_timestamp()) THEN
        RAISE EXCEPTION 'call % wrote rows nobody judged', NEW.call_id USING ERRCODE = 'RM003';
      END IF;
      RETURN NULL;
    END
    $$
    """,
    f"""
    CREATE FUNCTION capture.keep_verdict() RETURNS trigger {_DEFINER} AS $$
    BEGIN
      IF OLD.verdict IS NOT NULL OR OLD.transaction_id IS DISTINCT FROM pg_current_xact_id_if_assigned()
         OR OLD.begun_at <> transaction_timestamp() THEN
        RAISE EXCEPTION 'the verdict of call % stands', OLD.call_id USING ERRCODE = 'RM007';
      END IF;
      RETURN NEW;
    END
    $$
    """,
    f"""
    CREATE FUNCTION capture.refuse_truncate() RETURNS trigger {_DEFINER} AS $$
    BEGIN
      RAISE EXCEPTION 'TRUNCATE of % is refused: its rows would go unseen', TG_TABLE_NAME USING ERRCODE = 'RM005';
    END
    $$
    """,
)

_TRIGGERS = (
    """
    CREATE CONSTRAINT TRIGGER require_verdict AFTER INSERT ON public.call_outcome
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION capture.require_verdict()
    """,
    """
    CREATE TRIGGER keep_verdict BEFORE UPDATE OF verdict, judged ON public.call_outcome
      FOR EACH ROW EXECUTE FUNCTION capture.keep_verdict()
    """,
    "ALTER TABLE public.call_outcome ENABLE ALWAYS TRIGGER require_verdict",
    "ALTER TABLE public.call_outcome ENABLE ALWAYS TRIGGER keep_verdict",
)

_SCHEMA_STATE = (
    """
    CREATE TABLE public.schema_table (
      table_name text PRIMARY KEY,
      capture_hash text NOT NULL,
      migrated_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
    CREATE TABLE public.schema_state (
      only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
      schema_hash text NOT NULL,
      migrated_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
)

_REVOKES = (
    "REVOKE ALL ON SCHEMA capture FROM PUBLIC",
    "REVOKE ALL ON FUNCTION public.capture_take(uuid), public.capture_sweep(interval, integer) FROM PUBLIC",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA capture FROM PUBLIC",
)


def upgrade() -> None:
    for statement in (*_TABLES, *_FUNCTIONS, *_TRIGGERS, *_SCHEMA_STATE, *system_tables_statements(), *_REVOKES):
        op.execute(statement)
    for script in (outbox_ddl(), idempotency_ddl()):
        # The driver takes one statement at a time.
        for statement in script.split(";\n"):
            if statement.strip():
                op.execute(statement)
