"""A driver for test_restart.py to kill: a streaming query with a carry-over reads files, calls a service, writes files.

    python killed_driver.py FOLDER PORT

It continues from its checkpoint and never ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.real.jobs import session
from tests.service import Client
from tests.streaming import ROCKSDB, STATE_STORE, PatientQuery
from udfs import CarryOver, unordered_wait


def main(folder: Path, port: int) -> None:
    spark = session({STATE_STORE: ROCKSDB, "spark.sql.shuffle.partitions": "2"})
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(folder / "source"))
    carry_over = CarryOver(budget=0.3)
    ask = Client(port).ask
    enriched = unordered_wait(source, ask, "answer string", inputs=["id"], timeout=600.0, carry_over=carry_over)
    writer = enriched.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    running = PatientQuery(lambda: writer.start(str(folder / "sink")))
    while True:
        running.has_ended(1.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
