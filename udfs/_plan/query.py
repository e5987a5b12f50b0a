"""Query: the DataFrame that a call of a DataFrame operator returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from .._sent.settings import CarryOver, Flatten, Mode
from .._sent.signature import check_arity, parameter_names, signature_of
from .._spark_thread.conversion import RowConversion
from .arguments import StreamArguments, check_dataframe, column_names, for_session, make_settings
from .memo import Memo, as_memo
from .memo_query import check_memo, query_with_memo
from .metrics import check_metrics, observe
from .row_plan import RowPlan, plan_rows
from .schema import microseconds, new_columns
from .stateful_query import check_carry_over, query_with_carry_over
from .worker_python import for_map_in_arrow, use_the_drivers_python


def build_query(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    timeout: float,
    arguments: StreamArguments,
    *,
    mode: Mode,
    inputs: Sequence[str] | None,
    flatten: Flatten,
    key: Any = None,
) -> DataFrame:
    """The DataFrame with the new columns, as the operator of this mode adds them.

    Args:
        mode: The operator that the user called. The other arguments are the user's.

    Raises:
        TypeError, ValueError: As in the public functions.
        MemoError: The memo belongs to another function, or to other types.
    """
    check_dataframe(df)
    event_time, carry_over = arguments.pop("event_time", None), arguments.pop("carry_over", None)
    max_out_of_orderness = arguments.pop("max_out_of_orderness", None)
    if (event_time is None) != (max_out_of_orderness is None):
        raise ValueError("event_time and max_out_of_orderness belong together: give both or neither")
    delay = None if max_out_of_orderness is None else microseconds(max_out_of_orderness)
    metrics, memo = arguments.pop("metrics", None), arguments.pop("memo", None)
    if metrics is not None:
        check_metrics(metrics, df)
    settings = make_settings(function, timeout, arguments, mode=mode, delay=delay, has_metrics=metrics is not None)
    limits = arguments.get("cluster_capacity"), arguments.get("cluster_rate"), arguments.get("cluster_budget")
    settings = for_session(settings, *limits, df.sparkSession)
    keys = column_names("key", [key] if isinstance(key, str) else key) if mode == "keyed" else []
    if carry_over is not None:
        check_carry_over(carry_over, df, event_time)
    if not isinstance(flatten, bool) and flatten != "outer":
        raise ValueError(f'flatten must be True, False or "outer", got {flatten!r}')
    if memo is not None:
        memo = as_memo(memo)
        check_memo(memo, df, mode, on_error=settings.on_error, event_time=event_time, carry_over=carry_over)
    use_the_drivers_python(df.sparkSession)
    names = column_names("inputs", parameter_names(function) if inputs is None else inputs)
    check_arity(settings.function.name, signature_of(function), names)
    plan = plan_rows(
        df,
        new_columns(schema),
        settings,
        inputs=names,
        event_time=event_time,
        keys=keys,
        flatten=flatten,
        are_parameters=inputs is None,
    )
    with_results = _with_results(plan, carry_over, memo)
    if plan.source is not df:
        with_results = with_results.toDF(*plan.names)
    return with_results if metrics is None else observe(with_results, metrics, settings)


def _with_results(plan: RowPlan, carry_over: CarryOver | None, memo: Memo | None) -> DataFrame:
    """The enriched rows, with the column names of the plan's source."""
    if carry_over is not None:
        return query_with_carry_over(plan, carry_over)
    if memo is not None:
        return query_with_memo(plan, memo)
    enrichment = plan.enrichment
    task = for_map_in_arrow(enrichment.settings.function.name, lambda batches: RowConversion(enrichment).run(batches))
    return plan.source.mapInArrow(task, plan.schema)
