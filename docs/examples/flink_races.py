"""One record with retries and a deadline, under two sets of rules, in each order.

`flink` follows the texts of three tickets, not Flink's source. It has a retry timer and
flags. `loop` is a loop in a cancel scope.
"""

from collections import deque
from dataclasses import dataclass, replace
from functools import partial

RETRIES = 2
LATE = "an attempt begins after the timeout"
LOST = "the record never ends"
RACES = {"FLINK-30477": LATE, "FLINK-38082": LATE, "FLINK-40456": LOST}


@dataclass(frozen=True)
class Record:
    attempts: int = 1
    is_running: bool = True
    has_timer: bool = False
    has_timed_out: bool = False
    has_ended: bool = False


def flink(record, cured):
    """The events that are possible now, each with the record after it."""
    if record.is_running:
        after = replace(record, is_running=False)
        yield "attempt succeeds", ended(after, cured, fails=False)
        yield "attempt fails", ended(after, cured, fails=True)
    if record.has_timer:
        yield "attempt begins", begun(record)
    if not record.has_timed_out and not record.has_ended:
        late = replace(record, has_timed_out=True)
        yield "timeout() gives a result", timed_out(late, cured, fails=False)
        yield "timeout() fails", timed_out(late, cured, fails=True)


def ended(record, cured, *, fails):
    """The function, or its method `timeout`, has completed the future."""
    if record.has_ended:
        return record
    if record.has_timer and "FLINK-40456" not in cured:
        return record  # a retry is under way: drop the result
    may_retry = not record.has_timed_out or "FLINK-38082" not in cured
    if fails and may_retry and record.attempts <= RETRIES:
        return replace(record, has_timer=True)
    return replace(record, has_ended=True)


def timed_out(record, cured, *, fails):
    if "FLINK-30477" in cured and "FLINK-40456" in cured:
        return ended(replace(record, has_timer=False), cured, fails=fails)
    after = ended(record, cured, fails=fails)
    if "FLINK-30477" in cured and record.has_timer:  # too late for `ended`
        return replace(after, has_timer=False)
    return after


def loop(record):
    if record.is_running:
        after = replace(record, is_running=False)
        yield "attempt succeeds", replace(after, has_ended=True)
        is_last = record.attempts > RETRIES
        yield "attempt fails", replace(after, has_ended=is_last, has_timer=not is_last)
    if record.has_timer:
        yield "attempt begins", begun(record)
    if not record.has_ended:  # the deadline cancels the call or the backoff
        late = replace(record, is_running=False, has_timer=False, has_timed_out=True)
        yield "deadline", replace(late, has_ended=True)


def begun(record):
    attempts = record.attempts + 1
    return replace(record, has_timer=False, is_running=True, attempts=attempts)


def explore(rules):
    """The shortest trace to each race, and the number of states."""
    found, paths, todo = {}, {Record(): ()}, deque([Record()])
    while todo:
        record = todo.popleft()
        steps = [(event, after) for event, after in rules(record) if after != record]
        if not steps and not record.has_ended:
            found.setdefault(LOST, paths[record])
        for event, after in steps:
            path = (*paths[record], event)
            if event == "attempt begins" and record.has_timed_out:
                found.setdefault(LATE, path)
            if after not in paths:
                paths[after] = path
                todo.append(after)
    return found, len(paths)


def main():
    for ticket, race in RACES.items():
        found, _ = explore(partial(flink, cured=RACES.keys() - {ticket}))
        print(f"{ticket}: {race}\n    " + ", ".join(found[race]))
    for name, rules in ("all three cured", partial(flink, cured=RACES)), ("loop", loop):
        found, states = explore(rules)
        print(f"{name}: {states} states, {len(found)} races")


if __name__ == "__main__":
    main()
