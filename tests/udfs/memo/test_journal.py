"""Journals: an answer that was added survives the process."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa

from udfs._memo.journal import Journal, read_journal


def answers(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers, "text": [f"answer {n}" for n in numbers]})


def test_answers_can_be_read_as_soon_as_they_are_added(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"), str(tmp_path / "temporary"), answers(1, 2))
    for number in (3, 4):
        journal.append(answers(number))
        found = read_journal(io.BytesIO((tmp_path / "journal").read_bytes()))
        assert found.column("n").to_pylist() == list(range(1, number + 1))
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


def test_a_journal_that_was_cut_off_anywhere_has_the_answers_before_that(tmp_path: Path) -> None:
    """The first answers are complete: the journal appears with them."""
    Journal(str(tmp_path / "journal"), str(tmp_path / "temporary"), answers(0))
    first = (tmp_path / "journal").stat().st_size
    journal = Journal(str(tmp_path / "journal"), str(tmp_path / "temporary"), answers(0))
    ends = [first]
    for number in (1, 2):
        journal.append(answers(number))
        ends.append((tmp_path / "journal").stat().st_size)
    content = (tmp_path / "journal").read_bytes()
    for length in range(first, len(content) + 1):
        expected = [number for number, end in enumerate(ends) if end <= length]
        assert read_journal(io.BytesIO(content[:length])).column("n").to_pylist() == expected
        zeros = content[:length] + bytes(len(content) - length)  # as a file system may leave them
        assert read_journal(io.BytesIO(zeros)).column("n").to_pylist()[: len(expected)] == expected


def test_a_journal_is_removed_once(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"), str(tmp_path / "temporary"), answers(1))
    (tmp_path / "journal").unlink()
    journal.remove()
    assert list(tmp_path.iterdir()) == []
