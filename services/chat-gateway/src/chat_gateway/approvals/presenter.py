"""The card in the chat's own words (R-120 to R-130). Pure: texts and rights come in as arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from remit_contracts.runs import PendingCallView, PendingTurn
from remit_contracts.scope import AssignmentScope

from chat_gateway.access.visibility import Visible
from chat_gateway.approvals import texts
from chat_gateway.approvals.rehearsed import rehearsal_lines
from chat_gateway.approvals.schemas import ApprovalCard, CardCall
from chat_gateway.identifiers import reduce_identifier

ALL_REFUSED = "allRefused"
SECOND_APPROVER = "secondApprover"
PREVIEW = "preview"
PRECEDENCE: Sequence[str] = (ALL_REFUSED, SECOND_APPROVER, "configuration", PREVIEW)
Words = Callable[..., str]


@dataclass(frozen=True)
class Known:
    """What the viewer may know.

    Attributes:
        visible: records the viewer may see; none where that could not be checked, then nothing of a rehearsal is named.
        tables: tables the viewer may select, with labels.
        languages: titles by language id, as far as they are known.
    """

    visible: Visible | None = field(default_factory=Visible)
    tables: Mapping[str, str] = field(default_factory=dict)
    languages: Mapping[int, str] = field(default_factory=dict)


def names_languages(turn: PendingTurn) -> bool:
    """Whether the card names a language by its title."""
    scope = _scope(turn.scope_summary)
    return bool(scope is not None and scope.languages) or any((call.language or 0) > 0 for call in turn.calls)


def blocked_reasons(turn: PendingTurn) -> tuple[str, ...]:
    """Every reason the card cannot be approved, most important first (R-129, A-11)."""
    given = [turn.approve_blocked, *turn.approve_blocked_reasons]
    if turn.calls and all(call.refused_by_rule is not None for call in turn.calls):
        given.append(ALL_REFUSED)
    reasons = dict.fromkeys(reason for reason in given if reason)
    ranked = {reason: place for place, reason in enumerate(PRECEDENCE)}
    return tuple(sorted(reasons, key=lambda reason: ranked.get(reason, len(PRECEDENCE))))


def present_card(
    turn: PendingTurn,
    run: UUID,
    known: Known,
    words: Words,
) -> ApprovalCard:
    """The card for one viewer.

    Args:
        turn: as the runtime gave it.
        run: it belongs to.
        known: to the viewer.
        words: texts in the reader's language, with parameters.
    """
    reasons = blocked_reasons(turn)
    carried_out = tuple(call.call_id for call in turn.calls if call.refused_by_rule is None)
    return ApprovalCard(
        run=run,
        turn_digest=turn.turn_digest,
        kind=turn.kind,
        calls=tuple(_call(call, known, words) for call in turn.calls),
        question=turn.question,
        approve_blocked=reasons[0] if reasons else "",
        approve_blocked_reasons=reasons,
        approve_blocked_texts=tuple(words(texts.BLOCKED.get(reason, texts.BLOCKED_OTHER)) for reason in reasons),
        may_decide=True,
        carried_out=carried_out,
        refused=tuple(call.call_id for call in turn.calls if call.refused_by_rule is not None),
        scope_summary=scope_sentence(turn.scope_summary, known.languages, words),
        approve_label=_approve_label(turn, words) if carried_out and not reasons else None,
    )


def _call(call: PendingCallView, known: Known, words: Words) -> CardCall:
    data: dict[str, Any] = {name: getattr(call, name) for name in PendingCallView.model_fields}
    refused = call.refused_by_rule
    if refused is not None:
        # The preview of a call that will not be carried out is the rule's explanation, nothing else.
        data["preview_lines"] = (refused.explanation,)
    # The rehearsal names records whoever may see them; the viewer gets the filtered lines instead.
    data["rehearsal"] = None
    return CardCall(
        **data,
        action_label=action_label(call.tool, words),
        workspace_sentence=workspace_sentence(call, words),
        language_title=known.languages.get(call.language) if call.language is not None else None,
        language_sentence=language_sentence(call.language, known.languages, words),
        rehearsal_lines=()
        if refused is not None
        else rehearsal_lines(call.rehearsal, known.visible, known.tables, words),
        notices=tuple(_notices(call, words)),
        carried_out=refused is None,
    )


def action_label(tool: str, words: Words) -> str:
    """What a tool does, in the chat's words."""
    if tool in texts.ACTIONS:
        return words(texts.ACTIONS[tool])
    return words(texts.OTHER_ACTION, tool=reduce_identifier(tool))


def workspace_sentence(call: PendingCallView, words: Words) -> str:
    """Where the call writes, from id and title alone (R-121); nothing for a call that writes nothing."""
    if not call.write:
        return ""
    if call.workspace_id == 0:
        return words(texts.LIVE)
    if call.workspace_title is None:
        return words(texts.WORKSPACE_WITHHELD, id=call.workspace_id)
    return words(texts.WORKSPACE, id=call.workspace_id, title=call.workspace_title)


def language_sentence(language: int | None, titles: Mapping[int, str], words: Words) -> str | None:
    """The target language; none where the tool takes none, which is not the default language (R-122).

    A language whose title is not known is said by its number.
    """
    if language is None:
        return None
    if language == 0:
        return words(texts.DEFAULT_LANGUAGE)
    if language == -1:
        return words(texts.ALL_LANGUAGES)
    title = titles.get(language)
    if title is None:
        return words(texts.LANGUAGE_UNTITLED, id=language)
    return words(texts.LANGUAGE, id=language, title=title)


def _language(number: int, titles: Mapping[int, str]) -> str:
    return f"{titles[number]} ({number})" if number in titles else str(number)


def _notices(call: PendingCallView, words: Words) -> Iterable[str]:
    if call.refused_by_rule is not None:
        yield words(texts.REFUSED)
    if call.requires_draft_workspace and call.would_write_live:
        yield words(texts.DRAFT_REQUIRED)
    if not call.tool_still_registered:
        yield words(texts.NOT_REGISTERED)
    if call.preview_stale:
        yield words(texts.STALE)
    if call.preview_failed:
        yield words(texts.PREVIEW_FAILED)


def _approve_label(turn: PendingTurn, words: Words) -> str:
    """What the approve button says: only calls that will be carried out (R-125)."""
    counted = Counter(action_label(call.tool, words) for call in turn.calls if call.refused_by_rule is None)
    actions = (
        words(texts.TIMES, action=action, count=count) if count > 1 else action for action, count in counted.items()
    )
    return words(texts.APPROVE, actions=", ".join(actions))


def _scope(summary: Mapping[str, Any] | None) -> AssignmentScope | None:
    if summary is None:
        return None
    try:
        return AssignmentScope.model_validate(summary)
    except ValidationError:
        return None


def scope_sentence(summary: Mapping[str, Any] | None, titles: Mapping[int, str], words: Words) -> str | None:
    """What the assignment is limited to, from its data; none where it is not limited or cannot be read."""
    scope = _scope(summary)
    if scope is None:
        return None
    if scope.admits_nothing:
        return words(texts.SCOPE_NOTHING)
    parts = [
        words(texts.SCOPE_PAGES, page=root.page, depth=root.depth)
        if root.depth
        else words(texts.SCOPE_PAGE, page=root.page)
        for root in scope.pages
    ]
    parts.extend(words(texts.SCOPE_RECORD, record=str(record)) for record in scope.records)
    if scope.tables is not None:
        parts.append(words(texts.SCOPE_TABLES, tables=", ".join(scope.tables)))
    if scope.languages is not None:
        parts.append(
            words(texts.SCOPE_LANGUAGES, languages=", ".join(_language(number, titles) for number in scope.languages))
        )
    return words(texts.SCOPE, parts="; ".join(parts))
