"""Journal: the latest answers of a task, in a file that is appended to before their rows come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["Journal", "read_journal"]


class Journal:
    """A file of answers on a local file system. A process that is killed loses no answer that was added.

    It is an Arrow stream that nobody ends. It appears under its name with its first answers.

    Args:
        path: Where it is to be.
        temporary: Another path in the same directory.
        first: The first answers.
    """

    def __init__(self, path: str, temporary: str, first: pa.Table) -> None:
        self._path = path
        self._file = pa.OSFile(temporary, "wb")
        self._writer = pa.ipc.new_stream(self._file, first.schema)
        self._writer.write_table(first)
        Path(temporary).replace(path)

    def append(self, answers: pa.Table) -> None:
        """Add answers."""
        self._writer.write_table(answers)

    def remove(self) -> None:
        """Close and remove the file, because its answers are in another one."""
        self._writer.close()
        self._file.close()
        Path(self._path).unlink(missing_ok=True)  # a compaction may have taken it for that of a process that was killed


def read_journal(stream: Any) -> pa.Table:
    """The answers in a journal, up to the first that is not complete, because its process was killed or writes it."""
    reader = pa.ipc.open_stream(stream)
    batches = []
    try:
        for batch in reader:
            batches.append(batch)  # noqa: PERF402 - keeps those before an error
    except (pa.ArrowInvalid, OSError):
        pass
    return pa.Table.from_batches(batches, reader.schema)
