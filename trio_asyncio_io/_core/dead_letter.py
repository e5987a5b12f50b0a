"""An element that failed for good, with its error."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from .._values.exceptions import attribute_of, chain_of, set_on, text_of
from .parameters import AnyByDefault, E_co

B = TypeVar("B", bound=BaseException)


class LostError(Exception):
    """Replaces an exception that was stored in a file, or that cannot be pickled.

    The message has that exception's type name and message. Its notes are kept.
    """


@dataclass(frozen=True, slots=True)
class DeadLetter(AnyByDefault, Generic[E_co]):
    """An element without a result, and its error; sent with `on_error="dead_letter"`.

    It always pickles, if its element does. The pickle keeps the error's notes and causes, but no tracebacks. An error
    that does not unpickle with the same type, message and notes is replaced by a `LostError`, and so is every error in
    the files of `trio_asyncio_io.checkpoints`.

    Attributes:
        element: The `StreamRecord` or bare value that was accepted.
        error: The exception of its last attempt; an `ElementTimeoutError` if its deadline expired.
        attempts: The number of calls made for it.
        seconds: From the start of its invocation to its failure, on Trio's clock.
    """

    element: E_co
    error: Exception
    attempts: int
    seconds: float

    def __copy__(self) -> DeadLetter[E_co]:
        return self  # `__reduce__` would replace the error

    def __reduce__(self) -> Any:
        links = [_picklable(link) for link in chain_of(self.error)]
        return DeadLetter, (self.element, links[0], self.attempts, self.seconds), links

    def __setstate__(self, links: list[BaseException]) -> None:
        _chained(links)


def texts_of(error: BaseException) -> list[tuple[str, list[str]]]:
    """The exception and its causes as text: the type name and message of each, and its notes."""
    return [_texts(link) for link in chain_of(error)]


def lost_error(texts: list[tuple[str, list[str]]]) -> LostError:
    """The exception for these texts."""
    links = [LostError(text) for text, _ in texts]
    for link, (_, notes) in zip(links, texts, strict=True):
        for note in notes:
            link.add_note(note)
    return _chained(links)


def _texts(error: BaseException) -> tuple[str, list[str]]:
    name = "" if type(error) is LostError else f"{type(error).__name__}: "
    notes = attribute_of(error, "__notes__")
    texts = [str(note) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    return f"{name}{text_of(error)}", texts


def _chained(links: list[B]) -> B:
    """The first exception, with each next one as a cause. A plain pickle drops the causes."""
    for error, cause in pairwise(links):
        set_on(error, __cause__=cause)
    return links[0]


def _picklable(error: BaseException) -> BaseException:
    """The exception itself if its type, message and notes survive pickling; else its replacement."""
    texts = _texts(error)
    try:
        twin = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        if type(twin) is type(error) and _texts(twin) == texts:
            return error
    except Exception:  # noqa: BLE001, S110 - a class's own pickling may raise anything
        pass
    return lost_error([texts])
