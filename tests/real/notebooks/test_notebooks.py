"""The operator in a notebook: the notebook of the documentation, progress in place, and Trio in a kernel of asyncio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import NOTEBOOKS, execute, text_of

from tests.support import thorough_except

pytestmark = pytest.mark.processes

SECONDS = 300


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_stored_outputs_are_those_of_a_run(path: Path) -> None:
    """If this fails, run `just notebooks`."""
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert text_of(execute(path)).splitlines() == path.read_text("utf-8").splitlines()


class Kernel(NotebookClient):
    """Runs cells in a new kernel, and records the types of the messages with outputs."""

    def __init__(self, *cells: str) -> None:
        super().__init__(new_notebook(cells=[new_code_cell(cell) for cell in cells]), timeout=SECONDS)
        self.messages: list[str] = []

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        self.messages.append(msg["msg_type"])
        return super().process_message(msg, cell, cell_index)

    def outputs(self) -> list[Any]:
        """The outputs of the last cell."""
        self.execute()
        outputs: list[Any] = self.nb.cells[-1].outputs
        return outputs


WATCHED = """
import trio
from trio.testing import MockClock
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.progress import progress

async def watched():
    async with ordered_wait(range(40), lambda n: trio.sleep(1.0), capacity=10, timeout=5.0) as results:
        with progress(results, total=40, description="<b>") as rows:
            async for _ in rows:
                pass

trio.run(watched, clock=MockClock(autojump_threshold=0))
"""


def test_progress_is_one_output_that_is_updated() -> None:
    kernel = Kernel(WATCHED)
    [output] = kernel.outputs()
    assert output.data["text/plain"] == "<b>: 40 outputs in 4 s (10/s), 0 retried, 0 failed, 0 timed out"
    assert kernel.messages.count("display_data") == 1
    assert kernel.messages.count("update_display_data") > 2


@pytest.mark.variation
def test_a_thread_can_update_its_output() -> None:
    """Spark's own progress bar does the same."""
    cell = """
from threading import Thread
from trio_asyncio_io.integration import display_on
display = display_on()
thread = Thread(target=lambda: (display.show("1 of 2 tasks"), display.close("2 tasks")))
thread.start()
thread.join()
"""
    kernel = Kernel(cell)
    [output] = kernel.outputs()
    assert output.data["text/plain"] == "2 tasks"
    assert kernel.messages.count("update_display_data") == 2


@pytest.mark.variation
def test_a_cell_can_run_trio_although_the_kernel_runs_asyncio() -> None:
    cell = """
import asyncio, trio
assert asyncio.get_running_loop().is_running()
trio.run(trio.sleep, 0)
"""
    assert Kernel(cell).outputs() == []


@pytest.mark.variation
def test_without_autoawait_an_await_names_the_problem() -> None:
    """The kernel would run the cell on asyncio."""
    cell = "from trio_asyncio_io import ordered_wait\nasync with ordered_wait([1], print, timeout=1.0): pass"
    kernel = Kernel(cell)
    kernel.allow_errors = True
    [error] = kernel.outputs()
    assert error.ename == "RuntimeError"
    assert error.evalue.endswith("in a notebook, run `%autoawait trio` in a cell before this one")


def test_autoawait_is_for_the_cells_behind_its_own() -> None:
    """IPython chooses the runner of a cell before it runs the cell."""
    cell = "from trio_asyncio_io import ordered_wait\nasync with ordered_wait([], print, timeout=1.0): print('done')"
    kernel = Kernel(f"%autoawait trio\n{cell}", cell)
    kernel.allow_errors = True
    [output] = kernel.outputs()
    assert kernel.nb.cells[0].outputs[0].ename == "RuntimeError"
    assert output.text == "done\n"


INTERRUPTED = """
import _thread, threading, trio
from trio_asyncio_io import ordered_wait

unwound = []

async def call(number):
    try:
        if number == 2:
            threading.Thread(target=_thread.interrupt_main).start()
        await trio.sleep_forever()
    finally:
        unwound.append(number)

async def main():
    async with ordered_wait(range(3), call, timeout=float("inf")) as results:
        async for _ in results:
            pass
"""


@pytest.mark.parametrize("run", thorough_except(["trio.run(main)"], ["trio.run(main)", "await main()"]))
def test_an_interrupt_cancels_the_calls_and_leaves_the_kernel_usable(run: str) -> None:
    kernel = Kernel("%autoawait trio", INTERRUPTED, run, "print(sorted(unwound))")
    kernel.allow_errors = True
    [output] = kernel.outputs()
    assert kernel.nb.cells[2].outputs[0].ename == "KeyboardInterrupt"
    assert output.text == "[0, 1, 2]\n"
