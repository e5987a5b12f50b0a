"""Durable checkpoints."""

from typing import assert_type

from trio_asyncio_io import Snapshot
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore


async def resume() -> None:
    async with SQLiteStore("job.sqlite") as store:
        assert_type(store, SQLiteStore)
        start = await store.load("job") or Checkpoint(Snapshot(), position=0)
        assert_type(start, Checkpoint)
        assert_type(start.snapshot.taken, int)
        await store.commit("job", Checkpoint(start.snapshot, position={"bytes": 7}))
