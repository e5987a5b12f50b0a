"""The questions and scripts of docs/tutorial/interactive/which-one.html."""

from __future__ import annotations

from typing import Any

from tests.docs.javascript import TUTORIAL, evaluate

__all__ = ["PAGE", "QUESTIONS", "SCRIPTS", "scripts"]

PAGE = TUTORIAL / "interactive" / "which-one.html"
QUESTIONS: list[dict[str, Any]] = evaluate(PAGE, "QUESTIONS")
SCRIPTS: dict[str, str] = {
    " ".join(chosen.values()): script
    for chosen, script in evaluate(PAGE, "allChoices().map(chosen => [chosen, scriptFor(chosen)])")
}


def scripts(where: str) -> list[str]:
    """The names of the scripts for elements in this place: their answers, separated by spaces."""
    return [name for name in SCRIPTS if name.split()[0] == where]
