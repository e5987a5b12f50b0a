from trio_asyncio_io import Watermark
from trio_asyncio_io.queues import UnorderedStreamElementQueue


def main():
    queue = UnorderedStreamElementQueue(bound=3)
    queue.try_put("slow")
    quick = queue.try_put("quick")
    queue.try_put(Watermark(1))
    late = queue.try_put("late")
    print("full:", queue.try_put("one too many"))
    for entry in (late, quick):
        entry.complete([entry.element.upper()])
    while queue.has_completed():
        print(queue.poll().results)
    print("left:", queue.values())


if __name__ == "__main__":
    main()
