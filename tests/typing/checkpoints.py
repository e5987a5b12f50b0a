"""Durable checkpoints: the stores, and a store that a user writes."""

from typing import assert_type

from trio_asyncio_io import Snapshot
from trio_asyncio_io.checkpoints import Checkpoint, CheckpointStore, SQLiteStore


class Memory:
    """A store needs two methods and no base class."""

    def __init__(self) -> None:
        self.stored: dict[str, Checkpoint] = {}

    async def load(self, name: str) -> Checkpoint | None:
        return self.stored.get(name)

    async def commit(self, name: str, checkpoint: Checkpoint) -> None:
        self.stored[name] = checkpoint


async def resume(store: CheckpointStore) -> None:
    start = await store.load("job") or Checkpoint(Snapshot(), position=0)
    assert_type(start, Checkpoint)
    assert_type(start.snapshot.taken, int)
    await store.commit("job", Checkpoint(start.snapshot, position={"bytes": 7}))


async def both() -> None:
    await resume(Memory())
    async with SQLiteStore("job.sqlite") as store:
        assert_type(store, SQLiteStore)
        await resume(store)
