"""The program that is submitted. A test tells it over a socket what to do, and hears what came of it, in lines of JSON.

    {"run": {"port", "rows", "partitions", "cache", "options"}, "number"}    asks the service about each row
    {"cancel": true}                                                         cancels all jobs
    {"stop": true}                                                           stops the session, and ends

    {"number", "rows": [[id, answer, home], ...], "home": home}  or  {"number", "error"}    for each run

`home` is the file or the folder that our packages were imported from: in the worker for a row, and in the driver.

    spark-submit ... _job.py <port of the test>
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import trio
from pyspark.sql import DataFrame, SparkSession

import trio_asyncio_io
import udfs
from trio_asyncio_io.policies import persistent
from udfs import AsyncFunction, unordered_wait


def home() -> str:
    """Where our packages came from."""
    origins = {Path(str(package.__file__)).absolute().parents[1] for package in (trio_asyncio_io, udfs)}
    return " and ".join(map(str, origins))


class Ask(AsyncFunction[int, tuple[str, str]]):
    """Gives the answer to `<id> <process> <home>`, over a connection of its own, and the home.

    Args:
        port: The service's.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    async def invoke(self, id: int) -> tuple[str, str]:  # noqa: A002 - the column is called so
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            await stream.send_all(f"{id} {os.getpid()} {home()}\n".encode())
            answer = b""
            while not answer.endswith(b"\n"):
                data = await stream.receive_some()
                if not data:
                    raise ConnectionError("the service has hung up")
                answer += data
        return answer.decode().rstrip("\n"), home()


def enriched(spark: SparkSession, job: dict[str, Any]) -> DataFrame:
    function: Any = Ask(job["port"])
    if job["cache"] is not None:
        function = persistent(function, job["cache"], name="ask")
    df = spark.range(0, job["rows"], 1, job["partitions"])
    return unordered_wait(df, function, "answer string, home string", timeout=600.0, **job["options"])


def outcome(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"rows": [tuple(row) for row in enriched(spark, job).collect()], "home": home()}
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return {"error": f"{type(error).__name__}: {error}"}


def main(port: int) -> None:
    spark = SparkSession.builder.getOrCreate()
    with socket.create_connection(("127.0.0.1", port)) as test, test.makefile() as orders:

        def run(number: int, job: dict[str, Any]) -> None:
            test.sendall(f"{json.dumps({'number': number, **outcome(spark, job)})}\n".encode())

        for order in map(json.loads, orders):
            if "run" in order:
                threading.Thread(target=run, args=(order["number"], order["run"]), daemon=True).start()
            elif "cancel" in order:
                spark.sparkContext.cancelAllJobs()
            else:
                spark.stop()
                return


if __name__ == "__main__":
    main(int(sys.argv[1]))
