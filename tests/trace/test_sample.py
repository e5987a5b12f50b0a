"""The sample: every n-th item, and never more than the limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_asyncio_io._watch.steps import SystematicSample


def sampled(number: int, limit: int) -> SystematicSample[int]:
    sample = SystematicSample[int](limit)
    for item in range(number):
        sample.offer(item, lambda item=item: item)  # type: ignore[misc]
        assert len(sample) <= limit
    return sample


@given(st.integers(0, 300), st.integers(1, 20))
def test_a_sample_is_every_nth_item_of_all(number: int, limit: int) -> None:
    sample = sampled(number, limit)
    assert list(sample.items()) == list(range(0, number, sample.every))[: len(sample)]
    assert sample.offered == number


@given(st.integers(0, 300), st.integers(2, 20))
def test_n_grows_no_more_than_the_limit_demands(number: int, limit: int) -> None:
    sample = sampled(number, limit)
    assert sample.every == 1 or len(range(0, number, sample.every // 2)) > limit


def test_an_item_is_found_by_its_key() -> None:
    sample = sampled(10, 3)
    assert [sample.get(key) for key in (4, 5)] == [4, None]
