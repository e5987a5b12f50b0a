"""Adapters: each makes an async function of a function of another kind.

    in_thread       a blocking callable
    from_asyncio    an asyncio coroutine function, or an object whose methods are asyncio coroutine functions
    from_future     a callable that returns a `concurrent.futures.Future`
    from_callback   a callable that reports its result to a `ResultFuture`, from any thread

An adapter has the function as its only argument, and pickles if the function does.
"""

from .._values.public import publish
from ._asyncio import from_asyncio
from ._synchronous import ResultFuture, from_callback, from_future, in_thread

__all__ = ["ResultFuture", "from_asyncio", "from_callback", "from_future", "in_thread"]

publish(globals())
