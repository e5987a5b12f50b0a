"""Jobs in processes of their own, each with a Spark that a test may kill."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tests.service
from tests.processes import Family
from tests.wheel import ROOT, environment_of_a_user

CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def start(program: Path, folder: Path, *arguments: object, name: str = "driver", **more: str) -> Family:
    """Start a job in this folder, with these additional variables in its environment."""
    environment = environment_of_a_user(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT), **more)
    return Family([sys.executable, str(program), *map(str, arguments)], folder, environment, name)


def session(conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a job, on loopback, with these settings in addition to the usual ones."""
    cloudpickle.register_pickle_by_value(tests.service)  # so that the workers need not import what the tests need
    return SparkSession.builder.config(map=CONF | dict(conf or {})).getOrCreate()
