"""The built-in tools."""

from __future__ import annotations

from typing import Any

from agent_runtime.questions.ask_choice import AskChoice
from agent_runtime.tools.builtin.clear_cache import ClearCache
from agent_runtime.tools.builtin.copies import CopyRecord, CreateTranslationDraft
from agent_runtime.tools.builtin.create_content import CreateContentElementDraft
from agent_runtime.tools.builtin.delete_record import DeleteRecord
from agent_runtime.tools.builtin.moves import MoveContentElement, MovePage
from agent_runtime.tools.builtin.reading import GetPageContent, GetPagetree, ListLanguages, ReadRecord
from agent_runtime.tools.builtin.updates import UpdateContentElement, UpdatePageMetadata
from agent_runtime.tools.contracts import Tool


def builtin_tools() -> list[Tool[Any]]:
    """One of each, readers first."""
    return [
        GetPagetree(),
        GetPageContent(),
        ListLanguages(),
        ReadRecord(),
        AskChoice(),
        UpdatePageMetadata(),
        UpdateContentElement(),
        CreateContentElementDraft(),
        CreateTranslationDraft(),
        MoveContentElement(),
        MovePage(),
        CopyRecord(),
        DeleteRecord(),
        ClearCache(),
    ]
