"""The questions and scripts of docs/tutorial/interactive/which-one.html."""

from __future__ import annotations

from tests.docs.javascript import TUTORIAL, evaluate

PAGE = TUTORIAL / "interactive" / "which-one.html"
SCRIPTS: dict[str, str] = {
    " ".join(chosen.values()): script
    for chosen, script in evaluate(PAGE, "allChoices().map(chosen => [chosen, scriptFor(chosen)])")
}


def scripts(where: str) -> list[str]:
    """The names of the scripts for elements in this place: their answers, separated by spaces."""
    return [name for name in SCRIPTS if name.split()[0] == where]
