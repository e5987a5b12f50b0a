"""The command: `python -m udfs.check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from ._finding import Finding
from ._java import check_java
from ._packages import check_packages, check_python
from ._spark import check_spark
from ._worker import check_worker

__all__ = ["main"]

CHECKS: Final[dict[str, Callable[[], Finding]]] = {
    "python": check_python,
    "packages": check_packages,
    "java": check_java,
    "worker": check_worker,
    "spark": check_spark,
}
_NAMES: Final = ", ".join(CHECKS)
_NEEDS_THE_OTHERS: Final = "spark"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run checks and print a line for each.

    Args:
        arguments: The command line; None: `sys.argv`.

    Raises:
        SystemExit: There is a fault. The message has all of them, and a remedy for each.
    """
    names = _parser().parse_args(arguments).checks or list(CHECKS)
    findings: dict[str, Finding] = {}
    for name in CHECKS:
        if name in names:
            findings[name] = _run(name, findings)
            print(f"{findings[name].state:8} {name:9} {findings[name].text}", flush=True)
    faults = [f"{name}: {found.text}.\n{found.remedy}" for name, found in findings.items() if found.state == "fault"]
    if faults:
        sys.exit("\n" + "\n\n".join(f"error: {fault}" for fault in faults))


def _run(name: str, findings: dict[str, Finding]) -> Finding:
    faults = [each for each, found in findings.items() if found.state == "fault"]
    if name == _NEEDS_THE_OTHERS and faults:
        return Finding("skipped", f"because of {' and '.join(faults)}")
    return CHECKS[name]()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m udfs.check", description="Check whether this machine can run udfs, and name a remedy for each fault."
    )
    parser.add_argument("checks", nargs="*", type=_check_name, metavar="CHECK", help=f"{_NAMES}; default: all of them")
    return parser


def _check_name(text: str) -> str:
    if text not in CHECKS:
        raise argparse.ArgumentTypeError(f"no such check: {text!r} (checks: {_NAMES})")
    return text


if __name__ == "__main__":
    main()
