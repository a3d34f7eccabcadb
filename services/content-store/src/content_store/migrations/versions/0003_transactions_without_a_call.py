"""Whoever writes records outside of a call has to take what the database captured, before the commit (S-67).

A transaction that belongs to no call announces itself with its first write; a deferred trigger then refuses to commit
rows nobody took. The owner is free of it: what a loader or a migration leaves is published by the sweeper.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_DEFINER = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_STATEMENTS = (
    # A row never outlives its transaction, so there is nothing to log.
    """
    CREATE UNLOGGED TABLE capture.transaction_without_call (
      transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
      begun_at timestamptz NOT NULL DEFAULT transaction_timestamp(),
      PRIMARY KEY (transaction_id, begun_at)
    ) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000)
    """,
    f"""
    CREATE FUNCTION capture.require_taken() RETURNS trigger {_DEFINER} AS $$
    BEGIN
      DELETE FROM capture.transaction_without_call AS w
       WHERE w.transaction_id = NEW.transaction_id AND w.begun_at = NEW.begun_at;
      IF pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        RETURN NULL;
      END IF;
      IF EXISTS (SELECT FROM capture.captured_row AS c
                  WHERE c.transaction_id = NEW.transaction_id AND c.begun_at = NEW.begun_at) THEN
        RAISE EXCEPTION 'a transaction without a call wrote rows nobody took' USING ERRCODE = 'RM003';
      END IF;
      RETURN NULL;
    END
    $$
    """,
    """
    CREATE CONSTRAINT TRIGGER require_taken AFTER INSERT ON capture.transaction_without_call
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION capture.require_taken()
    """,
    "ALTER TABLE capture.transaction_without_call ENABLE ALWAYS TRIGGER require_taken",
    # What was answered is part of the verdict.
    "DROP TRIGGER keep_verdict ON public.call_outcome",
    """
    CREATE TRIGGER keep_verdict BEFORE UPDATE OF verdict, judged, result ON public.call_outcome
      FOR EACH ROW EXECUTE FUNCTION capture.keep_verdict()
    """,
    "ALTER TABLE public.call_outcome ENABLE ALWAYS TRIGGER keep_verdict",
    "REVOKE ALL ON capture.transaction_without_call FROM PUBLIC",
    "REVOKE ALL ON FUNCTION capture.require_taken() FROM PUBLIC",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
