from trio_asyncio_io import Watermark
from trio_asyncio_io.queues import (
    KeyedStreamElementQueue,
    OrderedStreamElementQueue,
    UnorderedStreamElementQueue,
)

ELEMENTS = [Watermark("w1"), "r1", "r2", "r3", Watermark("w2"), "r4"]


def steps(queue, elements, completions):
    """Put the elements, then complete records in this order. Yields each step."""
    entries = {}
    for element in elements:
        name = element.timestamp if isinstance(element, Watermark) else element
        entries[name] = queue.try_put(element)
    yield "all put", entries, emitted(queue)
    for name in completions:
        entries[name].complete([name.upper()])
        yield f"{name} completes", entries, emitted(queue)


def emitted(queue):
    """Remove whatever may be emitted now, as the emitter does."""
    outputs = []
    while queue.has_completed():
        outputs += queue.poll().results
    return [each.timestamp if isinstance(each, Watermark) else each for each in outputs]


def show(name, queue, elements=ELEMENTS, completions=("r2", "r4", "r3", "r1")):
    print(name)
    for step, _, outputs in steps(queue, elements, completions):
        print(f"  {step:<13}", "->", " ".join(outputs) or "nothing")


def main():
    show("ordered", OrderedStreamElementQueue(bound=4))
    show("unordered", UnorderedStreamElementQueue(bound=4))
    keyed = KeyedStreamElementQueue(bound=4, key=lambda record: record[0])
    show("keyed", keyed, ["a1", "a2", "b1", "b2"], ["b1", "a1", "b2", "a2"])


if __name__ == "__main__":
    main()
