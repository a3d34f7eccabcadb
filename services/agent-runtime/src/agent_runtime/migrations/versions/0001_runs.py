"""Runs, their steps and state, the governance log, outbox and idempotency keys."""

from __future__ import annotations

from alembic import op
from service_kit.idempotency import idempotency_ddl
from service_kit.outbox import outbox_ddl

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE run (
    id uuid PRIMARY KEY,
    status text NOT NULL CHECK (status IN ('queued', 'running', 'waiting_for_approval', 'waiting_for_input',
                                           'completed', 'failed', 'cancelled')),
    configuration text NOT NULL,
    conversation_id uuid,
    owner_uid integer NOT NULL,
    starter text NOT NULL,
    actor json NOT NULL,
    tools json,
    privacy_level text NOT NULL,
    segment integer NOT NULL DEFAULT 1,
    round integer NOT NULL DEFAULT 0,
    last_sequence bigint NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    outcome text,
    termination_reason text,
    truncated boolean NOT NULL DEFAULT false,
    retryable boolean NOT NULL DEFAULT false,
    error_code text,
    final_id uuid,
    final_sealed bytea,
    lease_owner text,
    lease_epoch integer NOT NULL DEFAULT 0,
    lease_until timestamptz,
    requeues integer NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    cancel_requested boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    waiting_since timestamptz,
    settled_at timestamptz
);
CREATE INDEX run_queued ON run (available_at) WHERE status = 'queued';
CREATE INDEX run_leased ON run (lease_until) WHERE status = 'running';
CREATE INDEX run_waiting ON run (owner_uid, id) WHERE status IN ('waiting_for_approval', 'waiting_for_input');
CREATE INDEX run_conversation ON run (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX run_settled ON run (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE run_state (
    id uuid PRIMARY KEY,
    run_id uuid NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    position bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    sealed bytea NOT NULL
);
CREATE INDEX run_state_run ON run_state (run_id, position);
CREATE UNIQUE INDEX run_state_single ON run_state (run_id, kind) WHERE kind IN ('turn', 'call');

CREATE TABLE run_step (
    run_id uuid NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    sequence bigint NOT NULL,
    segment integer NOT NULL,
    round integer NOT NULL,
    kind text NOT NULL,
    duration_ms double precision NOT NULL,
    call_id text,
    at timestamptz NOT NULL,
    payload json NOT NULL,
    PRIMARY KEY (run_id, sequence)
);

CREATE TABLE governance_log (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_id uuid,
    decision text NOT NULL CHECK (decision IN ('tool_denied', 'invocation_denied', 'write_unapproved',
                                               'approval_required', 'input_blocked')),
    user_uid integer,
    configuration text,
    tool text,
    call_id text,
    rule text,
    reason text
);
CREATE INDEX governance_log_run ON governance_log (run_id);
CREATE INDEX governance_log_at ON governance_log (at);
"""


def upgrade() -> None:
    """Make the tables."""
    for statement in (TABLES + outbox_ddl() + idempotency_ddl()).split(";\n"):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    """Remove the tables."""
    op.execute("DROP TABLE governance_log, run_step, run_state, run, outbox, outbox_stream, idempotency_key")
