"""Type parameters with the default Any: `Results[int]` is `Results[int, Any]`.

Python has such defaults since 3.13. For older ones, `AnyByDefault` adds what a subscript leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    E = TypeVar("E", default=Any)
    E_co = TypeVar("E_co", covariant=True, default=Any)
    O_co = TypeVar("O_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    E = TypeVar("E")
    E_co = TypeVar("E_co", covariant=True)
    O_co = TypeVar("O_co", covariant=True)


class AnyByDefault:
    """A generic class whose last type parameters may be left out."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __class_getitem__(cls, types: Any) -> Any:
            given = types if isinstance(types, tuple) else (types,)
            missing = len(cls.__parameters__) - len(given)
            return super().__class_getitem__((*given, *[Any] * missing))
