"""The card in the chat's own words."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from remit_contracts.base import Contract
from remit_contracts.conversations import PendingApproval, PendingTurnCall


class CardCall(PendingTurnCall):
    """A call of the card.

    Attributes:
        carried_out: an approval lets it be carried out; never a promise that it will succeed (R-126).
        language_title: of the target language, none where it is not known or there is none.
        language_sentence: the target language in words, none where the tool takes none (R-122).
        notices: further sentences beside the call: refused by a rule, a draft workspace is required, …
    """

    carried_out: bool = True
    language_title: str | None = None
    language_sentence: str | None = None
    notices: tuple[str, ...] = ()


class ApprovalCard(PendingApproval):
    """The card.

    Attributes:
        approve_label: what the approve button says; it names only calls that will be carried out. None = no button.
        approve_blocked_texts: why it cannot be approved, in words, in the order of ``approveBlockedReasons``.
    """

    calls: tuple[CardCall, ...] = ()
    approve_label: str | None = None
    approve_blocked_texts: tuple[str, ...] = ()


class DecisionAccepted(Contract):
    """Answer to a decision or an answer: the run goes on."""

    status: Annotated[str, Field(examples=["running"])]
