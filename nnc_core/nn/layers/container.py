"""Modules made of modules and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from nnc_core.base.errors import OperandError
from nnc_core.nn.module import Module


class Sequential(Module):
    """Layers one after another, named "0", "1", ...; plain functions become `Lambda`."""

    def __init__(self, *layers: Module | Callable[..., Any]) -> None:
        self._count = 0
        for layer in layers:
            self.append(layer)

    def append(self, layer: Module | Callable[..., Any]) -> None:
        """Add a layer at the end."""
        setattr(self, str(self._count), layer if isinstance(layer, Module) else Lambda(layer))
        self._count += 1

    def constructor_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The layers of now."""
        own = type(self).__init__ is Sequential.__init__
        return (tuple(self), {}) if own else super().constructor_arguments()

    def forward(self, x: Any) -> Any:
        """x through all layers."""
        for layer in self:
            x = layer(x)
        return x

    def __iter__(self) -> Iterator[Module]:
        return iter([self[i] for i in range(self._count)])

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Module:
        i = index + self._count if index < 0 else index
        if not 0 <= i < self._count:
            raise IndexError(f"layer {index} of {self._count}")
        found: Module = getattr(self, str(i))
        return found


class Lambda(Module):
    """A function as a layer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise OperandError(f"{type(function).__name__} is neither a module nor a function")
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def describe(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)
