from typing import TypedDict

import trio

from trio_asyncio_io import AsyncFunction, ExponentialBackoff, ordered_wait, transient


class Plane(TypedDict):
    tailnum: str
    model: str


class Planes(AsyncFunction[str, Plane]):  # from str to Plane
    async def open(self) -> None:
        self.models: dict[str, str] = {"N14228": "737-824"}

    async def invoke(self, tailnum: str) -> Plane:
        return {"tailnum": tailnum, "model": self.models[tailnum]}

    async def close(self) -> None:
        self.models.clear()


async def main() -> None:
    retry = ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient)
    async with ordered_wait(["N14228"], Planes(), timeout=5.0, retry=retry) as results:
        async for plane in results:  # a Plane
            print(plane["model"])


if __name__ == "__main__":
    trio.run(main)
