"""Every problem of the service is told in German, too."""

from __future__ import annotations

from content_store.app import routers
from service_kit.problems import ProblemError
from service_kit.texts import Texts


def problems(base: type[ProblemError]) -> set[type[ProblemError]]:
    return {base}.union(*(problems(sub) for sub in base.__subclasses__()))


def test_each_problem_has_a_german_title() -> None:
    assert routers(), "everything that raises problems is imported by now"
    own = sorted({p.title for p in problems(ProblemError) if p.__module__.startswith("content_store.")})
    texts = Texts(["content_store"])
    assert [title for title in own if texts.text(title, "de") == title] == []
    assert len(own) > 20
