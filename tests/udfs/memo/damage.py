"""Reads damaged memos, in a process of its own, because a defect could crash it.

python -m tests.udfs.memo.damage FORMAT TIMES FOLDER

Prints how often each outcome occurred: "right", "refused", "fewer" for a log that ends at the damage, and otherwise
what is wrong.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs import MemoError
from udfs._memo.directory import Directory
from udfs._memo.merge import rewrite
from udfs._memo.reader import Reader
from udfs._memo.writer import Writer, _Log
from udfs._plan.memo_layout import memo_schema

NUMBERS = 500
SCHEMA = memo_schema("ask", T.StructType([T.StructField("n", T.LongType())]), T.StringType(), ("n",))


def answers(*numbers: int) -> pa.Table:
    rows = [
        {
            "bucket": number % 256,
            "key": number.to_bytes(16, "big"),
            "inputs": {"n": number},
            "answer": f"answer {number}",
            "error": None,
            "answered_at": 1_700_000_000_000_000,
            "function": "ask",
            "version": "1",
        }
        for number in numbers
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def make_log(directory: Directory, rows: int) -> None:
    """Write the log of a task that was killed."""
    log = _Log(directory, range(256), answers(*range(rows)))
    for first in range(rows, NUMBERS, rows):
        log.append(answers(*range(first, min(NUMBERS, first + rows))))
    log.close()


def make_parquet(directory: Directory) -> None:
    """Write the file of a task that ended."""
    with Writer(directory, 60.0, range(256)) as writer:
        writer.add(answers(*range(NUMBERS)))


def make_merged(directory: Directory) -> None:
    """Merge two files."""
    make_parquet(directory)
    make_parquet(directory)
    rewrite(directory, list(directory.files().values()))
    files = directory.files()
    directory.remove(*(path.name for path in Path(directory.path).iterdir() if path.name not in files))


MAKERS: dict[str, Callable[[Directory], None]] = {
    "log": lambda directory: make_log(directory, 10),
    "log of single rows": lambda directory: make_log(directory, 1),
    "parquet": make_parquet,
    "merged": make_merged,
}


def outcome(path: str, name: str) -> str:
    try:
        reader = Reader(Directory(path, SCHEMA))
        tables = [reader.bucket(number) for number in range(0, 256, 51)]
    except MemoError as error:
        return "refused" if name in str(error) and "remove it" in str(error) else f"no name or remedy: {error}"
    except Exception as error:  # noqa: BLE001 - it is the outcome
        return f"{type(error).__name__} without a name"
    found = {row["key"]: row for table in tables for row in table.to_pylist()}
    right = {row["key"]: row for row in answers(*(n for n in range(NUMBERS) if n % 256 % 51 == 0)).to_pylist()}
    if any(right.get(key) != row for key, row in found.items()):
        return "a wrong answer"
    return "right" if found == right else "fewer"


def damaged(good: bytes, random: Random) -> bytes:
    """Bytes with a damage."""
    content, at = bytearray(good), random.randrange(len(good))
    if random.random() < 0.5:  # half of the damages are in the last bytes: there is the footer of Parquet
        at = random.randrange(max(0, len(good) - 6_000), len(good))
    match random.randrange(3):
        case 0:
            content[at] ^= 1 << random.randrange(8)
        case 1:
            content[at : at + 512] = bytes(len(content[at : at + 512]))
        case _:
            del content[at:]
    return bytes(content)


def main(kind: str, times: int, path: str) -> None:
    directory = Directory(path, SCHEMA)
    directory.claim()
    MAKERS[kind](directory)
    [file] = [file for file in directory.files().values() if file.buckets]
    target = Path(path, file.name)
    good = target.read_bytes()
    assert outcome(path, file.name) == "right"
    random, outcomes = Random(kind), Counter[str]()
    for _ in range(times):
        content = damaged(good, random)
        if content == good:
            continue
        target.write_bytes(content)
        outcomes[outcome(path, file.name)] += 1
    target.unlink()
    directory.claim()  # as the next query does
    outcomes["removed: " + outcome(path, file.name)] += 1
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
