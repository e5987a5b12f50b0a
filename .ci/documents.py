"""Writes the documents of the top level into docs/maintain, where the site has them. Git ignores that folder.

The recipes `lint`, `pages` and `site` run this first.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def write(docs: Path = ROOT / "docs") -> None:
    """Write each document, with its links adapted."""
    folder = docs / "maintain"
    folder.mkdir(exist_ok=True)
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](../")
        adapted = re.sub(r"\]\([A-Z]+\.md", lambda found: found[0].lower(), text)
        (folder / name.lower()).write_text(adapted, encoding="utf-8")


if __name__ == "__main__":
    write()
