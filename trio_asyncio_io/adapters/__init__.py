"""Adapters: what people have, made into an async function.

    in_thread       a blocking callable
    from_asyncio    an asyncio coroutine function, or an object with a life of its own in asyncio
    from_future     a callable that returns a `concurrent.futures.Future`
    from_callback   a callable that hands its result to a `ResultFuture`, from any thread

Each takes the function and nothing else, and pickles as what it was made of.
"""

from .._addresses import publish
from .._function import is_async
from ._asyncio import from_asyncio
from ._callback import ResultFuture, from_callback
from ._future import from_future
from ._in_thread import in_thread

__all__ = ["ResultFuture", "from_asyncio", "from_callback", "from_future", "in_thread", "is_async"]

publish(globals())
