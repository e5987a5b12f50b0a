"""A driver that is there to be killed: a streaming query with a carry-over, from files to files, asking a service.

    python killed_driver.py FOLDER PORT

It starts where its checkpoint says, and never ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio
from pyspark.sql import SparkSession

from tests.streaming import PatientQuery
from udfs import CarryOver, unordered_wait

CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # it does not live long enough for more
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def main(folder: Path, port: int) -> None:
    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(f"{id}\n".encode())
            answer = b""
            while not answer.endswith(b"\n"):
                data = await stream.receive_some()
                if not data:
                    raise ConnectionError("the service has hung up")
                answer += data
            return answer.decode().rstrip("\n")

    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(folder / "source"))
    carry_over = CarryOver(budget=0.3, max_rows=50)
    enriched = unordered_wait(source, ask, "answer string", timeout=600.0, carry_over=carry_over)
    writer = enriched.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    running = PatientQuery(lambda: writer.start(str(folder / "sink")))
    while True:
        running.has_ended(1.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
