"""The log that writes answers while calls are running."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from tests.support import PATIENCE
from udfs._memo import answer_log
from udfs._memo.answer_log import AnswerLog


def answers(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers})


class Written(list[list[int]]):
    """What a log has written, one list for each file."""

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def __call__(self, tables: list[pa.Table]) -> None:
        self.append([n for table in tables for n in table.column("n").to_pylist()])
        self.event.set()


def test_answers_are_written_at_the_end_of_the_block_together() -> None:
    written = Written()
    with AnswerLog(written, every=PATIENCE) as log:
        log.add(answers(1, 2))
        log.add(answers(3))
        assert written == []
    assert written == [[1, 2, 3]]


def test_answers_are_written_during_the_block_without_a_further_answer() -> None:
    written = Written()
    with AnswerLog(written, every=0.0) as log:
        log.add(answers(1))
        assert written.event.wait(PATIENCE)
    assert written == [[1]]


def test_many_answers_are_written_before_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_log, "MAX_ROWS", 3)
    written = Written()
    with AnswerLog(written, every=PATIENCE) as log:
        log.add(answers(1, 2))
        log.add(answers(3))
        assert written.event.wait(PATIENCE)
        assert written == [[1, 2, 3]]


def test_answers_are_written_although_the_block_raises() -> None:
    written = Written()
    with suppress(ValueError), AnswerLog(written, every=PATIENCE) as log:
        log.add(answers(1))
        raise ValueError("stop")
    assert written == [[1]]


class Journal:
    """A journal that records its answers."""

    def __init__(self, first: pa.Table, written: Written) -> None:
        self.answers = first.column("n").to_pylist()
        self.written = written
        self.is_removed = False

    def append(self, answers: pa.Table) -> None:
        self.answers += answers.column("n").to_pylist()

    def remove(self) -> None:
        assert self.written[-1] == self.answers
        self.is_removed = True


def test_answers_are_in_a_journal_until_they_are_in_a_file() -> None:
    written = Written()
    journals: list[Any] = []

    def open_journal(first: pa.Table) -> Any:
        journals.append(Journal(first, written))
        return journals[-1]

    with AnswerLog(written, PATIENCE, open_journal) as log:
        log.add(answers(1))
        log.add(answers(2, 3))
        assert [each.answers for each in journals] == [[1, 2, 3]]
        assert not journals[0].is_removed
    assert journals[0].is_removed


def test_the_memo_is_tidied_after_many_files_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_log, "TIDY_EVERY", 2)
    written, tidied = Written(), []
    with AnswerLog(written, 0.0, tidy=lambda: tidied.append(len(written))) as log:
        for number in range(3):
            written.event.clear()
            log.add(answers(number))
            assert written.event.wait(PATIENCE)
    assert tidied == [2, 3]


def _full(_: Any) -> None:
    raise OSError("the disk is full")


def test_an_answer_that_cannot_be_written_fails_the_block() -> None:
    with pytest.raises(OSError, match="the disk is full"), AnswerLog(_full, every=PATIENCE) as log:
        log.add(answers(1))


def test_an_answer_that_cannot_be_written_does_not_replace_the_exception_of_the_block() -> None:
    log = AnswerLog(_full, every=PATIENCE)
    log.add(answers(1))
    error = ValueError("stop")
    assert log.__exit__(ValueError, error, None) is None


def test_a_log_without_answers_starts_no_thread() -> None:
    before = threading.active_count()
    with AnswerLog(Written(), every=0.0):
        assert threading.active_count() == before
