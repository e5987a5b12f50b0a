"""A memo in a remote session. Its directory is one that the client and the workers of the server see."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from tests.service import Service
from tests.support import PATIENCE
from udfs import Memo, ordered_wait

KEYS = 5


def test_each_key_is_called_once_and_never_again(spark: SparkSession, service: Service, tmp_path: Path) -> None:
    memo = Memo(str(tmp_path / "memo"))
    df = spark.range(0, 40, 1, 2).selectExpr("id", f"id % {KEYS} as key")
    out = ordered_wait(df, service.client.ask, "answer string", inputs=["key"], memo=memo, timeout=PATIENCE)
    for _ in range(2):
        assert [tuple(row) for row in out.collect()] == [(n, n % KEYS, str(n % KEYS)) for n in range(40)]
        assert Counter(service.calls) == Counter(map(str, range(KEYS)))
    rows = memo.read(spark).select("inputs.key", "answer").collect()
    assert sorted(map(tuple, rows)) == [(n, str(n)) for n in range(KEYS)]
    assert memo.compact() == KEYS
