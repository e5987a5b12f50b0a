"""The table of durable checkpoints in an SQLite file: one payload per name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .._sqlite import Database, FileFormat, checksum
from ._checkpoint import CheckpointError

__all__ = ["FORMAT", "CheckpointTable"]

FORMAT: Final = FileFormat(
    application_id=0x74616963,  # "taic"
    version=1,
    schema=(
        "CREATE TABLE checkpoints (name TEXT PRIMARY KEY, payload BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
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

_ROWS: Final = "SELECT name, payload, checksum FROM checkpoints"


class CheckpointTable:
    """The last committed payload of each name. Opens its file at the first use.

    Damaged bytes are an error, never another payload and never a missing one: each row has a checksum of its name and
    payload, and all rows are checked if a name is not found.

    Args:
        path: The file, on a local disk. Its directory must exist.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, FORMAT)

    def load(self, name: str) -> bytes | None:
        """The last committed payload of this name, or None.

        Raises:
            CheckpointError: The file cannot be used.
        """
        self._open()
        with self._database.translated_errors():
            found = self._database.connection.execute(f"{_ROWS} WHERE name = ?", (name,)).fetchall()
            for row in found or self._database.connection.execute(_ROWS):
                self._check_row(*row)
            return found[0][1] if found else None

    def commit(self, name: str, payload: bytes) -> None:
        """Replace the payload of this name, in one transaction. It is on disk when this returns.

        Raises:
            CheckpointError: The file cannot be used.
        """
        row = (name, payload, _checksum(name, payload))
        self._open()
        with self._database.translated_errors(), self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", row)

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

    def _check_row(self, name: object, payload: object, found: object) -> None:
        is_intact = isinstance(name, str) and isinstance(payload, bytes) and found == _checksum(name, payload)
        if not is_intact:
            raise self._database.damaged(f"the checksum of {name!r} is wrong")


def _checksum(name: str, payload: bytes) -> bytes:
    return checksum(name.encode(), payload)
