"""Everything the model reads that is not a tool's own text, in one place (T-07). English; each error starts the same."""

from __future__ import annotations

from collections.abc import Iterable

from remit_contracts.changes import RecordChange, RefusedWrite
from remit_contracts.scope import EffectiveAssignmentScope

from agent_runtime.tools.result import ERROR_PREFIX

MAX_IDENTITIES = 10

UNKNOWN_TOOL = ERROR_PREFIX + "There is no tool of this name. Nothing was changed."
NOT_PERMITTED = ERROR_PREFIX + "This tool may not be used in this run. Nothing was changed."
TOOL_FAILED = ERROR_PREFIX + "The tool failed."
HELD = (
    ERROR_PREFIX
    + "This call was held back while the run waited; it was not carried out. Ask again if it is still needed."
)
WRITE_UNAPPROVED = ERROR_PREFIX + "This call needs an approval that was not given. Nothing was changed."
REMOTE_BUDGET = ERROR_PREFIX + "The number of calls to other systems in one go is used up. Nothing was sent."
ROLLED_BACK = ERROR_PREFIX + "The whole call was undone; nothing of it stands."
CHANGED_MEANWHILE = (
    ERROR_PREFIX + "The record was changed by somebody else in the meantime. Nothing was changed; read it again."
)
LOCKED = ERROR_PREFIX + "The record is being changed by somebody else right now. Nothing was changed; try again later."
NOT_CONFIRMED = ERROR_PREFIX + (
    "The changes are not confirmed as saved: whether the call was carried out is not known. Read the record before going on."
)
STORE_REFUSED = ERROR_PREFIX + "The CMS did not accept the call. Nothing was changed."
CLOSING_PROMPT = "Answer now with what is known; no further tool can be used."
HOOK_FAILED = "A follow-up step of the CMS failed after the write; the record itself was saved."


def declined(decided_by: str, reason: str | None) -> str:
    """A person said no; nothing was carried out (T-07)."""
    because = f" reason={reason}" if reason else ""
    return (
        f"{ERROR_PREFIX}approval_denied decided_by={decided_by}{because}. The call was not carried out. "
        "Say so plainly, do not try the same call again unless the person asks for it."
    )


def denied_by_rule(rule: str, explanation: str) -> str:
    """A rule refused the call; names rule and reason."""
    return f"{ERROR_PREFIX}refused by the rule {rule}: {explanation}"


SCOPE_WORDS = {
    "en": {"none": "no scope", "page": "page {page}", "below": " and {depth} levels below", "more": " and more",
           "nothing": "nothing", "tables": "; tables ", "languages": "; languages ", "empty": "none"},
    "de": {"none": "kein Bereich", "page": "Seite {page}", "below": " und {depth} Ebenen darunter",
           "more": " und weitere", "nothing": "nichts", "tables": "; Tabellen ", "languages": "; Sprachen ",
           "empty": "keine"},
}  # fmt: skip


def scope_words(scope: EffectiveAssignmentScope | None, locale: str = "en") -> str:
    """The remit of the run in words; the model reads English, a card the acting user's language."""
    say = SCOPE_WORDS.get(locale, SCOPE_WORDS["en"])
    if scope is None:
        return say["none"]
    parts = [
        say["page"].format(page=root.page) + (say["below"].format(depth=root.depth) if root.depth else "")
        for root in scope.pages
    ]
    parts += [str(record) for record in scope.records]
    words = ", ".join(parts[:10]) + (say["more"] if len(parts) > 10 else "") if parts else say["nothing"]
    if scope.tables is not None:
        words += say["tables"] + (", ".join(scope.tables[:10]) or say["empty"])
    if scope.languages is not None:
        words += say["languages"] + (", ".join(str(item) for item in scope.languages[:10]) or say["empty"])
    return words


def refused_writes(refused: Iterable[RefusedWrite], scope: EffectiveAssignmentScope | None) -> str:
    """What the scope stopped, and the scope (S-70)."""
    items = [
        f"{item.operation} {item.table}:{item.uid if item.uid is not None else 'new'} ({item.reason})"
        for item in refused
    ]
    named = "; ".join(items[:MAX_IDENTITIES]) + (
        f" and {len(items) - MAX_IDENTITIES} more" if len(items) > MAX_IDENTITIES else ""
    )
    return f"The scope of this run stopped: {named}. The scope: {scope_words(scope)}."


def changed_before_failure(changes: Iterable[RecordChange], omitted: int) -> str:
    """What stands although the call is an error, ten identities at most (C-11)."""
    items = [f"{change.table}:{change.uid} {change.action.value}" for change in changes]
    more = len(items) - MAX_IDENTITIES + omitted if len(items) > MAX_IDENTITIES else omitted
    named = ", ".join(items[:MAX_IDENTITIES]) + (f" and at least {more} more" if more > 0 else "")
    return f"What was changed and stands: {named}." if named else "Nothing is known to have changed."


def dependency_answered(done: str, answer: str) -> str:
    """What the call had done, and what the person says about what it waited for."""
    return f"{done} The run waited for something else to be ready. The person says: {answer}"


def answered(answer: str) -> str:
    """The person's pick."""
    return f"The person chose: {answer}"
