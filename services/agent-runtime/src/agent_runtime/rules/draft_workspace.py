"""Built-in rule ``draft_workspace``: where the configuration asks for it, nothing is written live (T-50)."""

from __future__ import annotations

from collections.abc import Mapping

from agent_runtime.rules.contracts import RuleContext, RuleDenial

LIVE = "Changes are only allowed in a draft workspace, and this run works in the live one. Nothing was changed."
REMOTE = "Changes outside this CMS are not allowed where a draft workspace is required. Nothing was changed."


class DraftWorkspaceRule:
    """Refuses writes into the live workspace, and remote writes in every workspace."""

    id = "draft_workspace"

    async def judge(self, context: RuleContext) -> Mapping[str, RuleDenial]:
        """Denials by call id."""
        if not context.configuration.require_draft_workspace:
            return {}
        denials: dict[str, RuleDenial] = {}
        for call in context.calls:
            if call.remote:
                denials[call.call_id] = RuleDenial(self.id, "remote_write", REMOTE)
            elif call.write and context.actor.workspace_id == 0:
                denials[call.call_id] = RuleDenial(self.id, "live_workspace", LIVE)
        return denials
