"""The construction of a module, kept so that a file can repeat it."""

from __future__ import annotations

from copy import deepcopy
from types import FunctionType
from typing import Any


class Lost:
    """In the place of an argument that was not copied with its module: a function without a public name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}, which is not part of a pickle>"


class Construction:
    """The arguments of a constructor.

    Not a tuple, so that what is among them does not count as a part of the module.
    """

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs

    def __deepcopy__(self, memo: dict[int, Any]) -> Construction:
        return Construction(deepcopy(self.args, memo), deepcopy(self.kwargs, memo))

    def __reduce__(self) -> Any:
        """A pickle of a module needs no initialiser: local functions are left out."""
        args = tuple([_picklable(x) for x in self.args])
        return Construction, (args, {name: _picklable(x) for name, x in self.kwargs.items()})


def _picklable(x: Any) -> Any:
    local = isinstance(x, FunctionType) and "<" in x.__qualname__
    return Lost(x.__qualname__) if local else x
