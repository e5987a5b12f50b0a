"""A forecast of 100 rows from a sample of some of them, with a memo.

python rehearsal_job.py PORT MEMO SAMPLE
"""

from __future__ import annotations

import sys
import warnings

from pyspark.sql import SparkSession

from tests.service import Client
from tests.support import PATIENCE
from udfs import rehearse

ROWS = 100


def main(port: int, memo: str, sample: int) -> None:
    warnings.simplefilter("ignore", UserWarning)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.range(0, ROWS, 1, 2)
    rehearse(rows, Client(port).ask, "answer string", sample, timeout=PATIENCE, inputs=["id"], memo=memo)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
