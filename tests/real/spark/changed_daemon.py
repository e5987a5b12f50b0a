"""A daemon for Spark's workers in which no part has the name or the form that PySpark's own has.

Spark starts it as `python -m changed_daemon`, with `spark.python.daemon.module`.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import pyspark.daemon
from pyspark.sql.pandas import serializers


def with_other_parameters(method: Any) -> Any:
    def changed(self: Any, *arguments: Any) -> Any:
        return method(self, *arguments)

    return changed


for kind in vars(serializers).values():
    for name in {"arrow_to_pandas", "_create_batch"} & set(vars(kind) if inspect.isclass(kind) else ()):
        setattr(kind, name, with_other_parameters(vars(kind)[name]))

SOURCE = re.sub(r"\b(sock|outfile)\b", r"their_\1", inspect.getsource(pyspark.daemon))

if __name__ == "__main__":
    exec(compile(SOURCE, __file__, "exec"), {"__name__": "__main__"})
