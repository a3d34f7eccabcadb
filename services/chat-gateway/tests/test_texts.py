from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from io import StringIO

import pytest
from babel.messages.pofile import read_po
from chat_gateway.access import endpoints as access_endpoints
from chat_gateway.access import errors as access_errors
from chat_gateway.approvals import errors as approval_errors
from chat_gateway.approvals import texts as approval_texts
from chat_gateway.changes import texts as change_texts
from chat_gateway.conversations import errors as conversation_errors
from chat_gateway.stream import errors as stream_errors
from service_kit.problems import ProblemError

CLAIMS = re.compile(r"\b(public\w*|complete\w*|öffentlich\w*|vollständig\w*|komplett\w*)\b", re.IGNORECASE)
PARAMETERS = re.compile(r"\{(\w+)\}")


def catalogue() -> dict[str, str]:
    text = (files("chat_gateway") / "locale" / "de" / "chat_gateway.po").read_text(encoding="utf-8")
    return {str(entry.id): str(entry.string) for entry in read_po(StringIO(text), locale="de") if entry.id}


def source_texts() -> Iterator[str]:
    for module in (approval_texts, change_texts):
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, dict):
                yield from (str(text) for text in value.values())
            elif name.isupper() and isinstance(value, str) and " " in value:
                yield value
    for module in (access_endpoints, access_errors, approval_errors, conversation_errors, stream_errors):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, ProblemError) and value.__module__ == module.__name__:
                yield value.title
                if value.detail_text is not None:
                    yield value.detail_text


@pytest.mark.req("R-082")
def test_no_label_claims_what_is_not_known() -> None:
    texts = [*source_texts(), *catalogue().values()]
    assert len(texts) > 100
    assert [text for text in texts if CLAIMS.search(text)] == []
    assert CLAIMS.search("the list is complete")
    assert CLAIMS.search("Diese Seite ist öffentlich")


def test_every_text_has_a_german_one_with_the_same_parameters() -> None:
    german = catalogue()
    missing = [text for text in source_texts() if text not in german]
    assert missing == []
    wrong = [text for text, said in german.items() if set(PARAMETERS.findall(text)) != set(PARAMETERS.findall(said))]
    assert wrong == []
