"""``remit chat`` as a person uses it: typed lines in, what is printed out."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from remit_harness.scenes import row_of
from remit_harness.stacks import TestStack
from remit_local.chat import TerminalChat
from rich.console import Console


def _talk(stack: TestStack, *lines: str) -> str:
    """Type the lines one after the other, then end the input; the text on the screen."""
    typed: Iterator[str] = iter(lines)
    screen = io.StringIO()

    def ask(prompt: str) -> str:
        line = next(typed, None)
        if line is None:
            raise EOFError
        screen.write(f"{prompt}{line}\n")
        return line

    TerminalChat(Console(file=screen, width=150), stack.stack.chat, ask).run()
    assert next(typed, None) is None, f"not everything was read:\n{screen.getvalue()}"
    return screen.getvalue()


@pytest.mark.req("T-33")
def test_a_person_asks_approves_and_reads_the_list(stack: TestStack) -> None:
    element = stack.elements("Housing")[0]
    screen = _talk(stack, f"Set the header of element {element} to Flats of the town", "y", "/changes", "/quit")
    assert "call 1 of 1" in screen
    assert screen.count("What changed") == 2
    assert row_of(stack, "tt_content", element)["header"] == "Flats of the town"


def test_a_declined_call_and_one_left_for_later(stack: TestStack) -> None:
    element = stack.elements("Housing")[1]
    before = row_of(stack, "tt_content", element)["header"]
    screen = _talk(
        stack, f"Set the header of element {element} to Nothing of it", "l", "/card", "x", "n", "nonsense", "/quit"
    )
    assert "Left open" in screen
    assert row_of(stack, "tt_content", element)["header"] == before


def test_somebody_else_and_words_there_are_not(stack: TestStack) -> None:
    screen = _talk(stack, "/as jonas", "/changes", "/dance", "/help", "/new")
    assert "jonas> " in screen
    assert "There is no /dance" in screen
    assert "Nothing was asked yet" in screen
