"""The table of durable checkpoints in an SQLite file: snapshot and position, in bytes, per name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .._codec import Codec
from .._sqlite import Database, FileFormat, checksum
from ._checkpoint import CheckpointError

__all__ = ["FORMAT", "CheckpointTable"]

FORMAT: Final = FileFormat(
    application_ids={"plain": 0x74616963, "pickle": 0x74616970},  # "taic" and "taip"
    version=1,
    schema=(
        "CREATE TABLE checkpoints (name TEXT PRIMARY KEY, snapshot BLOB, position BLOB, checksum BLOB) WITHOUT ROWID",
    ),
    settings=(
        # Not WAL: a second file would grow with each commit. With EXTRA, a power cut cannot bring back the journal of a
        # commit that has returned, and so undo it. On macOS, only fullfsync writes through the disk's own cache
        "PRAGMA journal_mode = DELETE",
        "PRAGMA synchronous = EXTRA",
        "PRAGMA fullfsync = ON",
    ),
    error=CheckpointError,
    noun="file",
    kind="a file of durable checkpoints",
    if_damaged="restore it from a copy, together with the output that belongs to it, or delete both and begin anew",
    if_other_version="finish the job with the release that began it, or upgrade",
)

# No durable checkpoint has this name. In its row, the position is the number of the other rows: a missing row is not
# taken for a job that has never committed
_COUNT: Final = ""


class CheckpointTable:
    """The last snapshot and position that were committed under each name. Opens its file at the first use.

    Damaged bytes are an error, never another snapshot and never a missing one: each row has a checksum of its name and
    content, and all rows are checked and counted.

    Args:
        path: The file, on a local disk. Its directory must exist.
        codec: The codec of snapshots and positions.
    """

    def __init__(self, path: Path, codec: Codec) -> None:
        self._database = Database(path, FORMAT, codec)

    def load(self, name: str) -> tuple[bytes, bytes] | None:
        """The last snapshot and position that were committed under this name, or None.

        Raises:
            CheckpointError: The file cannot be used.
        """
        self._open()
        with self._database.translated_errors():
            return self._checked_rows().get(name)

    def commit(self, name: str, snapshot: bytes, position: bytes) -> None:
        """Replace snapshot and position of this name, in one transaction. They are on disk when this returns.

        Raises:
            CheckpointError: The file cannot be used.
        """
        self._open()
        with self._database.translated_errors(), self._database.transaction() as connection:
            if not connection.execute("SELECT 1 FROM checkpoints WHERE name = ?", (name,)).fetchall():
                self._replace(_COUNT, b"", b"%d" % (len(self._checked_rows()) + 1))
            self._replace(name, snapshot, position)

    def close(self) -> None:
        """Close the file, if it is open."""
        self._database.close()

    def _open(self) -> None:
        if self._database.is_open:
            return
        self._database.open()
        try:
            self._check_integrity()
        except BaseException:
            self._database.close()
            raise

    def _check_integrity(self) -> None:
        with self._database.translated_errors():
            (verdict,) = self._database.connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise self._database.damaged(" ".join(verdict.split()))

    def _checked_rows(self) -> dict[str, tuple[bytes, bytes]]:
        """Snapshot and position of each name. All rows are intact, and none is missing."""
        rows = {}
        for row in self._database.connection.execute("SELECT name, snapshot, position, checksum FROM checkpoints"):
            self._check_row(*row)
            rows[row[0]] = row[1:3]
        _, number = rows.pop(_COUNT, (b"", b"0"))
        if int(number) != len(rows):
            raise self._database.damaged(f"it has {len(rows)} durable checkpoints, and had {int(number)}")
        return rows

    def _check_row(self, name: object, snapshot: object, position: object, found: object) -> None:
        is_intact = (
            isinstance(name, str)
            and isinstance(snapshot, bytes)
            and isinstance(position, bytes)
            and found == checksum(name.encode(), snapshot, position)
        )
        if not is_intact:
            raise self._database.damaged(f"the checksum of {name!r} is wrong")

    def _replace(self, name: str, snapshot: bytes, position: bytes) -> None:
        row = (name, snapshot, position, checksum(name.encode(), snapshot, position))
        self._database.connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", row)
