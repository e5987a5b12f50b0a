"""The program that is submitted. It exchanges lines of JSON with the test over a socket. Commands:

    {"run": {"port", "rows", "partitions", "cache", "options"}, "number"}    calls the service for each row
    {"cancel": true}                                                         cancels all jobs
    {"stop": true}                                                           stops the session and ends the program

Reports, one for each run:

    {"number", "rows": [[id, answer, home], ...], "home": home}
    {"number", "error"}

`home` is the file or folder from which our packages were imported: for a row in its worker, otherwise in the driver.

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
    """The file or folder from which our packages were imported."""
    origins = {Path(str(package.__file__)).absolute().parents[1] for package in (trio_asyncio_io, udfs)}
    return " and ".join(map(str, origins))


class Ask(AsyncFunction[int, tuple[str, str]]):
    """Returns the answer to `<id> <process> <home>`, over a connection of its own, and the home.

    Args:
        port: The port of the service.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    async def invoke(self, id: int) -> tuple[str, str]:  # noqa: A002 - the name of the column
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
    except Exception as error:  # noqa: BLE001 - the test checks it
        return {"error": f"{type(error).__name__}: {error}"}


def main(port: int) -> None:
    spark = SparkSession.builder.getOrCreate()
    with socket.create_connection(("127.0.0.1", port)) as test, test.makefile() as commands:

        def run(number: int, job: dict[str, Any]) -> None:
            test.sendall(f"{json.dumps({'number': number, **outcome(spark, job)})}\n".encode())

        for command in map(json.loads, commands):
            if "run" in command:
                threading.Thread(target=run, args=(command["number"], command["run"]), daemon=True).start()
            elif "cancel" in command:
                spark.sparkContext.cancelAllJobs()
            else:
                spark.stop()
                return


if __name__ == "__main__":
    main(int(sys.argv[1]))
