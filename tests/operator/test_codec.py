"""Values in files: what is read has the type and value that was stored, and nothing else can be stored."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from io import BytesIO
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import stable_id
from trio_asyncio_io import DeadLetter, LostError, Snapshot, SnapshotElement, StreamRecord, Watermark
from trio_asyncio_io._files.codec import NotStorableError, UnreadableError, decoded, encoded

PARIS = ZoneInfo("Europe/Paris")
ZONES = st.none() | st.sampled_from([UTC, PARIS, ZoneInfo("UTC"), timezone(timedelta(hours=-5, seconds=1), "here")])
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters() | st.characters(categories=["Cs"]))
    | st.sampled_from(["$tuple", "$", "$dict", "\ud83d\ude00", "\ud800\udc00", "\U00010000", '\x00"\\\u2028'])
    | st.binary()
    | st.decimals().filter(lambda number: not number.is_snan())  # it has no hash
    | st.uuids()
    | st.dates()
    | st.times(timezones=st.sampled_from([UTC, timezone(timedelta(minutes=90))]) | st.none())
    | st.datetimes(timezones=ZONES)
    | st.timedeltas()
    | ZONES
)
HASHABLES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(StreamRecord, inner, inner)
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(["$", "$tuple", "a"]), inner, max_size=4)
        | st.dictionaries(HASHABLES, inner, max_size=3)
        | st.sets(HASHABLES, max_size=3)
        | st.frozensets(HASHABLES, max_size=3)
        | st.builds(StreamRecord, inner, inner)
        | st.builds(Watermark, inner)
        | st.builds(SnapshotElement, st.integers(), inner, st.none() | st.lists(inner, max_size=3))
    ),
    max_leaves=12,
)


def exact(value: Any) -> Any:
    """A description that is equal only for values of the same types that are equal in all parts."""
    kind = type(value)
    parts: Any = hex(value) if kind is int else repr(value)
    if kind in (list, tuple):
        parts = [exact(item) for item in value]
    elif kind is dict:
        parts = [(exact(key), exact(item)) for key, item in value.items()]
    elif kind in (set, frozenset):
        parts = sorted(repr(exact(item)) for item in value)
    elif kind in (StreamRecord, Watermark, SnapshotElement, Snapshot):
        parts = [exact(getattr(value, field.name)) for field in fields(kind)]
    elif kind is str:
        parts = [ord(character) for character in value]
    return kind, parts


@given(VALUES)
@settings(deadline=None)
def test_what_is_read_has_the_type_and_value_that_was_stored(value: Any) -> None:
    assert exact(decoded(encoded(value, "value"))) == exact(value)


@given(VALUES, VALUES)
@settings(deadline=None)
def test_different_values_are_stored_as_different_bytes(one: Any, other: Any) -> None:
    if encoded(one, "one") == encoded(other, "other"):
        assert exact(one) == exact(other)


SIMILAR = [
    [0, False, 0.0, -0.0, "0", b"0", None, Decimal(0), Decimal("0.0"), Decimal("-0"), [], (), {}, set(), frozenset()],
    [1, True, 1.0, "1", [1], (1,), {1}, frozenset({1}), {1: 1}, {"1": 1}, {True: 1}, StreamRecord(1), Watermark(1)],
    [{"$tuple": [1]}, (1,), {"$": 1}, {"$dict": [["$", 1]]}, ["$tuple", 1]],
    ["\ud800\udc00", "\U00010000", "\\ud800\\udc00"],
    [datetime(2026, 1, 1), date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, fold=1)],
    [datetime(2026, 1, 1, tzinfo=zone) for zone in (UTC, ZoneInfo("UTC"), timezone(timedelta(0), "Z"))],
    [math.nan, math.inf, -math.inf, "nan", Decimal("nan"), Decimal("sNaN"), Decimal("-nan7")],
    [10**4300, 10**5000, -(10**5000), 2**63, -(2**63), float(2**63)],
]


@pytest.mark.parametrize("values", SIMILAR, ids=range(len(SIMILAR)))
def test_similar_values_stay_different(values: list[Any]) -> None:
    for one, other in combinations(values, 2):
        assert encoded(one, "one") != encoded(other, "other")
    for value in values:
        assert exact(decoded(encoded(value, "value"))) == exact(value)


def test_values_of_json_are_readable_in_the_file() -> None:
    assert encoded({"temp": [1.5, None], "é": True}, "value") == '{"temp":[1.5,null],"é":true}'.encode()
    assert encoded((1, b"x"), "value") == b'{"$tuple":[1,{"$bytes":"eA=="}]}'


def test_a_snapshot_is_read_as_it_was() -> None:
    elements = (SnapshotElement(3, StreamRecord("a", 1.5), [("A",), None]), SnapshotElement(4, Watermark(PARIS)))
    for snapshot in (Snapshot(elements, taken=9), Snapshot(), Snapshot(elements, version=7)):
        assert exact(decoded(encoded(snapshot, "value"))) == exact(snapshot)


def test_the_error_of_a_dead_letter_becomes_its_text() -> None:
    error = ExceptionGroup("several", [ValueError("a")])
    error.__cause__ = LostError("OSError: gone")
    error.__cause__.__cause__ = error  # a cycle
    error.add_note("\ud800")
    found = decoded(encoded(DeadLetter((1,), error, 2, math.inf), "value"))
    assert (found.element, found.attempts, found.seconds) == ((1,), 2, math.inf)
    assert repr(found.error) == "LostError('ExceptionGroup: several (1 sub-exception)')"
    assert found.error.__notes__ == ["\ud800"]
    assert repr(found.error.__cause__) == "LostError('OSError: gone')"
    assert found.error.__cause__.__cause__ is None


class Color(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


class Zone(tzinfo):
    """A time zone of the user's own."""

    def utcoffset(self, _: Any) -> timedelta:
        return timedelta(0)

    def __repr__(self) -> str:
        return "Zone()"


@dataclass(frozen=True)
class Point:
    x: int


Pair = namedtuple("Pair", "a b")  # noqa: PYI024
NOT_STORABLE = [
    object,
    Color.RED,
    Number.ONE,
    Text("a"),
    Pair(1, 2),
    Point(1),
    OrderedDict(a=1),
    defaultdict(int),
    bytearray(b"x"),
    memoryview(b"x"),
    range(3),
    1j,
    Fraction(1, 2),
    ValueError("x"),
    threading.Lock(),
    Zone(),
    lambda: None,
    ...,
]


@pytest.mark.parametrize("value", NOT_STORABLE, ids=stable_id)
def test_a_value_of_another_type_is_refused_with_its_type_and_the_remedy(value: Any) -> None:
    kind = type(value).__qualname__
    with pytest.raises(NotStorableError) as caught:
        encoded(value, "result")
    message = str(caught.value)
    assert message.startswith("result is ")
    assert f"cannot be stored: files have no form for the type {kind}; convert it to plain values, " in message
    assert message.endswith(", for example with dataclasses.asdict")


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, 2, 3, Color.RED]}, "results['a'][3]"),
        (({1: Color.RED},), "results[0][1]"),
        ({"a": {Color.RED: 1}}, "results['a'] (a key)"),
        (StreamRecord([Color.RED], 1), "results.value[0]"),
        (Watermark(Color.RED), "results.timestamp"),
        (Snapshot((SnapshotElement(7, 1, [Color.RED]),)), "results.elements[0].results[0]"),
        (DeadLetter(Color.RED, ValueError("x"), 1, 0.5), "results.element"),
    ],
    ids=stable_id,
)
def test_the_error_has_the_place_of_the_value(value: Any, place: str) -> None:
    with pytest.raises(NotStorableError) as caught:
        encoded(value, "results")
    assert str(caught.value).startswith(f"{place} is <Color.RED")


@pytest.mark.parametrize("value", [{Color.RED}, datetime(2026, 1, 1, tzinfo=Zone())], ids=["set", "zone"])
def test_the_error_has_the_type_inside_a_set_or_a_datetime(value: Any) -> None:
    with pytest.raises(NotStorableError, match=r"files have no form for the type (Color|Zone)"):
        encoded(value, "result")


@pytest.mark.parametrize("key", [None, "Europe/Oslo"])
def test_a_zone_from_a_file_is_refused(key: str | None) -> None:
    """Its key does not determine its rules."""
    counts = b"".join(count.to_bytes(4, "big") for count in (0, 0, 0, 0, 1, 4))
    zone = ZoneInfo.from_file(BytesIO(b"TZif\0" + bytes(15) + counts + bytes(6) + b"UTC\0"), key=key)  # RFC 8536
    with pytest.raises(NotStorableError, match=r"^value is .*: it was read with ZoneInfo.from_file; convert"):
        encoded(datetime(2026, 1, 1, tzinfo=zone), "value")


def nested(depth: int, make: Any, value: Any = 1) -> Any:
    for _ in range(depth):
        value = make(value)
    return value


MAKERS = [lambda value: [value], lambda value: (value,), lambda value: {1: value}, lambda value: {"a": value}]


LEAVES = [
    1,
    2**70,
    1.5,
    math.inf,
    "x",
    None,
    True,
    b"x",
    Decimal(1),
    date(2026, 1, 1),
    datetime(2026, 1, 1, tzinfo=PARIS),
]


@pytest.mark.parametrize("make", MAKERS, ids=["list", "tuple", "dict", "object"])
@pytest.mark.parametrize("leaf", LEAVES, ids=repr)
def test_nested_values_are_refused_or_can_be_read(make: Any, leaf: Any) -> None:
    """Whatever is in the innermost container."""
    value = nested(100, make, leaf)
    assert decoded(encoded(value, "value")) == value
    for depth in range(120, 1_000, 20):
        try:
            payload = encoded(nested(depth, make, leaf), "value")
        except NotStorableError as error:
            assert str(error).startswith("value is ")  # noqa: PT017
            assert "it contains itself, or is nested too deeply" in str(error)  # noqa: PT017
        else:
            decoded(payload)


def test_a_container_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotStorableError, match=r"^value is .* it contains itself"):
        encoded(value, "value")


JSON = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
).map(json.dumps)


@given((st.text() | JSON).map(str.encode) | st.binary())
def test_other_bytes_are_refused_or_are_a_plain_value(payload: bytes) -> None:
    try:
        value = decoded(payload)
    except UnreadableError:
        return
    assert exact(decoded(encoded(value, "value"))) == exact(value)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[",
        b'{"$unknown":1}',
        b'{"$tuple":1}',
        b'{"$set":[[]]}',
        b'{"$bytes":"\xff"}',
        b'{"$bytes":"a"}',
        b'{"$datetime":["yesterday",0,null]}',
        b'{"$ZoneInfo":"Nowhere/Land"}',
        b'{"$ZoneInfo":"../../etc/passwd"}',
        b'{"$Snapshot":[1,2,3,4]}',
        b'{"$DeadLetter":[1,[],1,1]}',
        b"[" * 100_000,
        b"1" * 10_000,
    ],
    ids=stable_id,
)
def test_a_payload_without_a_meaning_is_refused(payload: bytes) -> None:
    with pytest.raises(UnreadableError):
        decoded(payload)


def test_the_bytes_of_a_set_do_not_depend_on_the_process() -> None:
    code = (
        "from trio_asyncio_io._files.codec import encoded; "
        "print(encoded(frozenset('abcdefgh') | {1, None, (2, 'b')}, ''))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
