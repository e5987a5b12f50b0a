"""The log of a task: what was added survives the process, and becomes a Parquet file at its end."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support import PATIENCE, wait_until
from tests.udfs.memo.damage import SCHEMA
from tests.udfs.memo.looking import ALL, known
from tests.wheel import ROOT
from udfs._memo import writer as module
from udfs._memo.directory import Directory
from udfs._memo.writer import Writer


def cannot_be_written(directory: Directory, reason: str) -> str:
    """A pattern for the error."""
    return rf"the memo {re.escape(directory.path)} cannot be written \({reason}\): make room"


def logs(directory: Directory) -> list[str]:
    return [path.name for path in Path(directory.path).glob("_log-*")]


def test_answers_are_found_as_soon_as_they_are_added(memo: Directory, answers: Any) -> None:
    with Writer(memo, PATIENCE, ALL) as writer:
        for number in range(3):
            writer.add(answers(number))
            assert known(memo) == list(range(number + 1))
        assert len(logs(memo)) == 1


def test_the_log_becomes_a_parquet_file_at_the_end(memo: Directory, answers: Any) -> None:
    with Writer(memo, PATIENCE, range(1, 256, 2)) as writer:
        writer.add(answers(1, 3))
        writer.add(answers(5))
    assert logs(memo) == []
    [file] = [file for file in memo.files().values() if file.buckets]
    assert file.buckets == range(1, 256, 2)
    assert known(memo) == [1, 3, 5]


def test_the_log_becomes_a_parquet_file_although_the_block_raises(memo: Directory, answers: Any) -> None:
    with suppress(ValueError), Writer(memo, PATIENCE, ALL) as writer:
        writer.add(answers(1))
        raise ValueError("stop")
    assert logs(memo) == []
    assert known(memo) == [1]


def test_answers_are_on_the_disk_soon(memo: Directory, answers: Any) -> None:
    with Writer(memo, 0.0, ALL) as writer:
        writer.add(answers(1))
        writer.add(answers(2))
        log = writer._log
        assert log is not None
        wait_until(lambda: not log.has_new, "the answers are not put on the disk")


def test_the_first_answers_of_a_log_are_on_the_disk_with_its_file(memo: Directory, answers: Any) -> None:
    writer = Writer(memo, PATIENCE, ALL)
    found = []
    for number in (1, 2):
        writer.add(answers(number))
        assert writer._log is not None
        found.append(writer._log.has_new)
    assert found == [False, True]


@pytest.mark.parametrize(("limit", "value"), [("LOG_BYTES", 1), ("LOG_SECONDS", 0.0)])
def test_a_log_that_is_full_or_old_ends_and_another_begins(
    memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    """So a log that nobody has written for an hour belongs to a killed task."""
    monkeypatch.setattr(module, limit, value)
    with Writer(memo, 0.0, ALL) as writer:
        for number in range(3):
            writer.add(answers(number))
            wait_until(lambda: not logs(memo), "the log does not end")
            assert known(memo) == list(range(number + 1))


def test_a_task_whose_log_was_taken_for_that_of_a_killed_one_begins_another(memo: Directory, answers: Any) -> None:
    with Writer(memo, PATIENCE, ALL) as writer:
        writer.add(answers(1))
        [name] = logs(memo)
        Path(memo.path, name).unlink()
        writer.add(answers(2))
        assert known(memo) == [2]


def test_a_log_that_another_one_replaces_is_closed(memo: Directory, answers: Any) -> None:
    left = []
    with Writer(memo, PATIENCE, ALL) as writer:
        for number in range(5):
            writer.add(answers(number))
            left.append(writer._log)
            for name in logs(memo):
                Path(memo.path, name).unlink()
    assert [log._descriptor for log in left if log is not None] == [-1] * 5


def test_without_files_that_grow_answers_are_written_after_their_time(memo: Directory, answers: Any) -> None:
    memo.can_append = False
    with Writer(memo, 0.0, ALL) as writer:
        for number in range(3):
            writer.add(answers(number))
            wait_until(lambda: known(memo) == list(range(number + 1)), "the answer is not written")  # noqa: B023
        assert len(logs(memo)) <= 1
    assert logs(memo) == []
    assert known(memo) == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "number"), [("open", errno.EOPNOTSUPP), ("pwrite", errno.ESPIPE), ("pwrite", errno.EPERM)]
)
def test_on_a_mount_that_refuses_appends_answers_are_written_as_on_an_object_store(
    memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    original = getattr(os, call)

    def refused(*arguments: Any) -> Any:
        if call == "open" and arguments[1] == os.O_RDONLY:  # to put a new file on the disk
            return original(*arguments)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refused)
    with Writer(memo, 0.0, ALL) as writer:
        for each in range(4):
            writer.add(answers(each))
            wait_until(lambda: known(memo) == list(range(each + 1)), "the answer is not written")  # noqa: B023
    assert not memo.can_append
    assert logs(memo) == []
    assert known(memo) == [0, 1, 2, 3]


def test_a_full_disk_fails_the_block(memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The append fails, and then the file that is written in its place."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def job() -> None:
        with Writer(memo, PATIENCE, ALL) as writer:
            writer.add(answers(1))
            monkeypatch.setattr(os, "pwrite", full)
            monkeypatch.setattr(memo, "_fs", Mock(wraps=memo._fs, open_output_stream=full))
            writer.add(answers(2))

    with pytest.raises(OSError, match=cannot_be_written(memo, "No space left on device")) as caught:
        job()
    assert caught.value.errno == errno.ENOSPC
    assert known(Directory(memo.path, memo.schema)) == [1]


def test_answers_that_cannot_be_put_on_the_disk_fail_the_block(
    memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = Writer(memo, PATIENCE, ALL)
    writer.__enter__()
    writer.add(answers(1))
    writer.add(answers(2))
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match=cannot_be_written(memo, "Input/output error")):
        writer.__exit__(None, None, None)


def test_an_answer_of_another_task_is_refused(memo: Directory, answers: Any) -> None:
    """Readers of its bucket would not look into this log."""
    with Writer(memo, PATIENCE, range(0, 256, 2)) as writer, pytest.raises(ValueError, match="an answer has a bucket"):
        writer.add(answers(1))


def test_a_writer_without_answers_writes_nothing(memo: Directory) -> None:
    with Writer(memo, 0.0, ALL):
        pass
    assert len(memo.files()) == 1


WRITES = """
import os, sys
from itertools import count
from tests.udfs.memo.damage import SCHEMA, answers
from udfs._memo import writer
from udfs._memo.directory import Directory
from udfs._memo.reader import Reader
writer.LOG_BYTES = 50_000  # logs end, and become Parquet files, several times
with writer.Writer(Directory(sys.argv[1], SCHEMA), 0.01, range(256)) as log:
    for number in count():
        log.add(answers(number))
        os.write(1, b"x")
"""


@pytest.mark.processes
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.thorough)])
def test_a_process_that_is_killed_at_any_moment_loses_no_answer_that_was_added(tmp_path: Path, kills: int) -> None:
    random = Random(kills)
    for attempt in range(kills):
        memo = Directory(str(tmp_path / str(attempt)), SCHEMA)
        memo.claim()
        command = [sys.executable, "-c", WRITES, memo.path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            acknowledged = len(process.stdout.read(random.randrange(1, 300)))
            process.send_signal(signal.SIGKILL)
            acknowledged += len(process.stdout.read())
        found = set(known(memo))
        assert found >= set(range(acknowledged))
        assert len(found) <= acknowledged + 1
