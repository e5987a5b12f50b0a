"""What an operator emits: bare results, records and watermarks, items, by source, function and options."""

from collections.abc import AsyncIterator
from typing import Any, assert_type

from trio_asyncio_io import (
    AsyncFunction,
    AsyncWaitOperator,
    DeadLetter,
    Results,
    Snapshot,
    StreamRecord,
    Watermark,
    assign_watermarks,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.checkpoints import CheckpointStore

RECORDS = [StreamRecord("a", 1), StreamRecord("b", 2)]


async def length(text: str) -> int:
    return len(text)


async def half(number: float) -> float:
    return number / 2


async def characters(text: str) -> list[str]:
    return list(text)


async def lengths(texts: list[str]) -> list[int | Exception]:
    return [len(text) if text else ValueError("empty") for text in texts]


async def characters_of_each(texts: list[str]) -> list[list[str]]:
    return [list(text) for text in texts]


async def shown(value: object) -> str:
    return str(value)


class Characters(AsyncFunction[str, list[str]]):
    async def invoke(self, value: str) -> list[str]:
        return list(value)


async def records() -> AsyncIterator[StreamRecord[str] | Watermark]:
    yield StreamRecord("a", 1)
    yield Watermark(1)


async def outputs_of_records_are_records_and_watermarks() -> None:
    total = 0
    async with unordered_wait([StreamRecord("a", 1), Watermark(2)], length, timeout=5.0) as results:
        assert_type(results, Results[StreamRecord[int] | Watermark, StreamRecord[str]])
        async for each in results:
            assert_type(each, StreamRecord[int] | Watermark)
            total += each  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
            if isinstance(each, StreamRecord):
                total += each.value
    async with ordered_wait(RECORDS, length, timeout=5.0) as results:
        assert_type(await results.receive(), StreamRecord[int] | Watermark)
        assert_type(results.receive_nowait(), StreamRecord[int] | Watermark)
    async with keyed_wait(records(), length, key=str.upper, timeout=5.0) as results:
        assert_type(results, Results[StreamRecord[int] | Watermark, StreamRecord[str]])
    made = assign_watermarks(["a"], timestamp=len, max_out_of_orderness=1)
    async with ordered_wait(made, length, timeout=5.0) as results:
        assert_type(results, Results[StreamRecord[int] | Watermark, StreamRecord[str]])
    async with ordered_wait(RECORDS, shown, timeout=5.0) as texts:
        assert_type(texts, Results[StreamRecord[str] | Watermark, StreamRecord[str]])


async def outputs_of_another_operator_are_its_elements() -> None:
    async with ordered_wait(["a"], length, timeout=5.0) as bare, unordered_wait(bare, half, timeout=5.0) as results:
        assert_type(results, Results[float, int])
    async with (
        ordered_wait(RECORDS, length, timeout=5.0) as made,
        keyed_wait(made, half, key=abs, timeout=5.0) as marked,
    ):
        assert_type(marked, Results[StreamRecord[float] | Watermark, StreamRecord[int]])
        list(marked)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    async with ordered_wait(["a"], length, timeout=5.0) as bare:
        ordered_wait(bare, length, timeout=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def outputs_with_flatten_are_items() -> None:
    async with ordered_wait(["a"], characters, timeout=5.0, flatten=True) as results:
        assert_type(results, Results[str, str])
        async for each in results:
            each.append("b")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    async with unordered_wait(["a"], Characters(), timeout=5.0, flatten=True) as results:
        assert_type(results, Results[str, str])
    async with keyed_wait(["a"], characters, key=len, timeout=5.0, flatten=True) as results:
        assert_type(results, Results[str, str])
    async with ordered_wait(RECORDS, characters, timeout=5.0, flatten=True) as marked:
        assert_type(marked, Results[StreamRecord[str] | Watermark, StreamRecord[str]])
    async with keyed_wait(RECORDS, characters, key=len, timeout=5.0, flatten=True) as marked:
        assert_type(marked, Results[StreamRecord[str] | Watermark, StreamRecord[str]])
    async with ordered_wait(["a"], characters, timeout=5.0, flatten=False) as lists:
        assert_type(lists, Results[list[str], str])
    ordered_wait(["a"], length, timeout=5.0, flatten=True)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    keyed_wait(["a"], length, key=len, timeout=5.0, flatten=True)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def outputs_of_groups_are_those_of_single_records() -> None:
    async with ordered_wait(["a"], lengths, timeout=5.0, group=10) as results:
        assert_type(results, Results[int, str])
    async with unordered_wait(RECORDS, lengths, timeout=5.0, group=10) as marked:
        assert_type(marked, Results[StreamRecord[int] | Watermark, StreamRecord[str]])
    async with keyed_wait(RECORDS, lengths, key=len, timeout=5.0, group=10) as marked:
        assert_type(marked, Results[StreamRecord[int] | Watermark, StreamRecord[str]])
    async with ordered_wait(["a"], characters_of_each, timeout=5.0, group=10, flatten=True) as items:
        assert_type(items, Results[str, str])
    async with keyed_wait(["a"], characters_of_each, key=len, timeout=5.0, group=10, flatten=True) as items:
        assert_type(items, Results[str, str])
    async with unordered_wait(RECORDS, characters_of_each, timeout=5.0, group=10, flatten=True) as texts:
        assert_type(texts, Results[StreamRecord[str] | Watermark, StreamRecord[str]])


async def outputs_of_a_mixed_source_are_mixed(mixed: list[str | StreamRecord[str] | Watermark]) -> None:
    async with ordered_wait(mixed, length, timeout=5.0) as results:
        assert_type(results, Results[int | StreamRecord[int] | Watermark, str | StreamRecord[str]])
    async with keyed_wait(mixed, length, key=str.upper, timeout=5.0) as results:
        assert_type(results, Results[int | StreamRecord[int] | Watermark, str | StreamRecord[str]])


async def outputs_of_an_untyped_source_are_those_of_the_function(unknown: list[Any], anything: Any) -> None:
    """mypy finds Any, and pyright the result of the function."""
    async with ordered_wait(unknown, length, timeout=5.0) as results:
        bare: Results[int] = results
    async with unordered_wait(unknown, characters, timeout=5.0, flatten=True) as items:
        flat: Results[str] = items
    async with keyed_wait(unknown, lengths, key=str.upper, timeout=5.0, group=2) as results:
        bare = results
    async with ordered_wait([], length, timeout=5.0) as results:
        bare = results
    async with ordered_wait(anything, length, timeout=5.0) as results:
        bare = results
    await bare.aclose()
    await flat.aclose()


async def pushed_values() -> None:
    async with AsyncWaitOperator(length, timeout=5.0) as operator:
        assert_type(operator.output, Results[int, str])
        await operator.put(StreamRecord("a", 1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        operator.put_nowait(Watermark(1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async with AsyncWaitOperator(characters, timeout=5.0, flatten=True) as flat:
        assert_type(flat.output, Results[str, str])
    async with AsyncWaitOperator(lengths, timeout=5.0, group=2) as groups:
        assert_type(groups.output, Results[int, str])
    async with AsyncWaitOperator(characters_of_each, timeout=5.0, group=2, flatten=True) as both:
        assert_type(both.output, Results[str, str])
    AsyncWaitOperator(length, timeout=5.0, flatten=True)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def pushed_records() -> None:
    """The types of the elements and of the outputs are given, because the function knows only the values."""
    async with AsyncWaitOperator[StreamRecord[str] | Watermark, StreamRecord[int] | Watermark](
        length, mode="unordered", timeout=5.0
    ) as operator:
        assert_type(operator, AsyncWaitOperator[StreamRecord[str] | Watermark, StreamRecord[int] | Watermark])
        await operator.put(StreamRecord("a", 1))
        operator.put_nowait(Watermark(1))
        await operator.put("a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert_type(await operator.output.receive(), StreamRecord[int] | Watermark)
    async with AsyncWaitOperator(length, source=RECORDS, timeout=5.0) as reading:
        assert_type(reading.output, Results[StreamRecord[int] | Watermark, StreamRecord[str] | Watermark])


async def dead_letters_have_the_element() -> None:
    async with ordered_wait(["a"], length, timeout=5.0, on_error="dead_letter") as results:
        async for letter in results.dead_letters:
            assert_type(letter, DeadLetter[str])
            assert_type(letter.element, str)
            letter.element + 1  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]
    async with ordered_wait(RECORDS, length, timeout=5.0, on_error="dead_letter") as marked:
        assert_type((await marked.dead_letters.receive()).element.value, str)


async def a_snapshot_is_restored_by_its_own_job() -> None:
    async with ordered_wait(["a"], length, timeout=5.0) as results:
        snapshot = results.snapshot()
    assert_type(snapshot, Snapshot[str, int])
    assert_type(snapshot.elements[0].element, str | Watermark)
    assert_type(snapshot.elements[0].results, list[int | DeadLetter[str]] | None)
    async with unordered_wait(["b"], length, timeout=5.0, restore=snapshot) as results:
        assert_type(results, Results[int, str])
    async with AsyncWaitOperator(length, timeout=5.0, restore=snapshot) as operator:
        assert_type(operator.snapshot(), Snapshot[str, int])
    async with ordered_wait(RECORDS, length, timeout=5.0) as marked:
        of_records = marked.snapshot()
    assert_type(of_records, Snapshot[StreamRecord[str], StreamRecord[int] | Watermark])
    async with ordered_wait(RECORDS, length, timeout=5.0, restore=of_records) as marked:
        assert_type(marked.snapshot(), Snapshot[StreamRecord[str], StreamRecord[int] | Watermark])


async def a_snapshot_of_another_job(
    of_numbers: Snapshot[int, int], of_records: Snapshot[StreamRecord[str], Any]
) -> None:
    ordered_wait(["a"], length, timeout=5.0, restore=of_numbers)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(["a"], length, timeout=5.0, restore=of_records)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def a_stored_snapshot_fits_every_job(store: CheckpointStore) -> None:
    stored = await store.load("job")
    start: Snapshot[str, int] = Snapshot() if stored is None else stored.snapshot
    async with ordered_wait(["a"], length, timeout=5.0, restore=start) as results:
        assert_type(results, Results[int, str])
    # Without these types, mypy finds Any for the outputs
    async with ordered_wait(["a"], length, timeout=5.0, restore=Snapshot()) as untyped:
        fits: Results[int, str] = untyped
    await fits.aclose()
