"""Asks the rules in their order; a rule that raises denies (T-50)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import entry_points

from service_kit.logging import get_logger
from service_kit.texts import Texts

from agent_runtime.rules.contracts import InvocationRule, RuleContext, RuleDenial

logger = get_logger(__name__)
ENTRY_POINTS = "agent_runtime.rules"
RULE_ID = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
RULE_FAILED = "rule_failed"
FAILED_MESSAGE = "The rule {rule} could not be asked. Nothing was changed."


class RuleRegistrationError(Exception):
    """A rule that may not be registered."""


class RuleEngine:
    """The rules of this installation: built in first, then those of installed packages."""

    def __init__(self, rules: Iterable[InvocationRule]) -> None:
        self.rules: list[InvocationRule] = []
        for rule in rules:
            if not RULE_ID.fullmatch(rule.id) or any(rule.id == known.id for known in self.rules):
                raise RuleRegistrationError(f"the rule id {rule.id!r} is not usable or is there twice")
            self.rules.append(rule)

    async def judge(self, context: RuleContext) -> dict[str, RuleDenial]:
        """The first denial of each call; a call one rule denied is not put to the next."""
        denials: dict[str, RuleDenial] = {}
        for rule in self.rules:
            left = [call for call in context.calls if call.call_id not in denials]
            if not left:
                break
            denials.update(await self._ask(rule, replace(context, calls=left)))
        return denials

    async def _ask(self, rule: InvocationRule, context: RuleContext) -> dict[str, RuleDenial]:
        asked = {call.call_id for call in context.calls}
        try:
            found = await rule.judge(context)
        except Exception as error:
            logger.error("rule failed", rule=rule.id, exc_info=error)
            # A call that only reads is nobody's risk: a broken rule must not take reading away.
            return {
                call.call_id: RuleDenial(rule.id, RULE_FAILED, FAILED_MESSAGE, {"rule": rule.id})
                for call in context.calls
                if call.write
            }
        return {call_id: denial for call_id, denial in found.items() if call_id in asked}


def explanation(denial: RuleDenial, texts: Texts, locale: str) -> str:
    """The reason in the acting user's language."""
    return texts.text(denial.message, locale, **denial.params)


def installed_rules() -> Sequence[InvocationRule]:
    """Rules of installed packages, each entry point a factory."""
    return [entry.load()() for entry in entry_points(group=ENTRY_POINTS)]
