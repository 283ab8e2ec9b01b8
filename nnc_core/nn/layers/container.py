"""Modules made of modules and functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from typing import Any, Self, SupportsIndex, TypeAlias, overload

from nnc_core.base.errors import AttributeValueError, OperandError, OutOfRangeError
from nnc_core.nn.module import Module
from nnc_core.values.trace import guarded

Part: TypeAlias = Module | Callable[..., Any]
Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


class _Numbered(Module):
    """Modules by position, which are attributes "0", "1", ...; a part of it (`modules[:2]`) shares them."""

    _count = 0

    def _parts(self) -> list[Module]:
        guarded(self._read_version)
        return [getattr(self, str(i)) for i in range(self._count)]

    def _set_parts(self, parts: Iterable[Any]) -> None:
        made = [_as_module(x) for x in parts]
        for i in range(self._count):
            delattr(self, str(i))
        for i, part in enumerate(made):
            setattr(self, str(i), part)
        self._count = len(made)

    def _position(self, index: SupportsIndex) -> int:
        i = operator.index(index)
        if not -self._count <= i < self._count:
            raise OutOfRangeError(f"module {i} of {self._count}", operator=type(self).__name__,
                                  hint=f"they count from 0 to {self._count - 1}" if self._count else "append one")
        return i % self._count

    def append(self, part: Part) -> None:
        """Add a module at the end."""
        setattr(self, str(self._count), _as_module(part))
        self._count += 1

    def extend(self, parts: Iterable[Part]) -> None:
        """Add modules at the end."""
        self._set_parts([*self._parts(), *parts])

    def insert(self, index: int, part: Part) -> None:
        """Add a module before the one at that position; those behind it have other names then."""
        parts: list[Any] = self._parts()
        parts.insert(index, part)
        self._set_parts(parts)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._parts())

    def __len__(self) -> int:
        guarded(self._read_version)
        return self._count

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return self._of(self._parts()[index])
        return self._parts()[self._position(index)]

    def _of(self, parts: list[Module]) -> Any:
        """The same kind of container of other modules."""
        raise NotImplementedError(f"{type(self).__name__} makes no other")

    def __setitem__(self, index: SupportsIndex | slice, part: Any) -> None:
        parts: list[Any] = self._parts()
        parts[index if isinstance(index, slice) else self._position(index)] = part
        self._set_parts(parts)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        parts = self._parts()
        del parts[index if isinstance(index, slice) else self._position(index)]
        self._set_parts(parts)

    def __add__(self, others: Iterable[Part]) -> Self:
        return self._of([*self._parts(), *[_as_module(x) for x in others]])  # type: ignore[no-any-return]


class Sequential(_Numbered):
    """Layers one after another, named "0", "1", ...; plain functions become `Lambda`.

    `layers[:2]` is a Sequential of the same layers.
    """

    def __init__(self, *layers: Part) -> None:
        self._set_parts(layers)

    def _of(self, parts: list[Module]) -> Sequential:
        return Sequential(*parts)

    def constructor_arguments(self) -> Arguments:
        """The layers of now."""
        own = type(self).__init__ is Sequential.__init__
        return (tuple(self), {}) if own else super().constructor_arguments()

    def forward(self, x: Any) -> Any:
        """x through all layers."""
        for layer in self:
            x = layer(x)
        return x


class ModuleList(_Numbered):
    """Modules that another one holds by position, as in a list, named "0", "1", ...: `nn.ModuleList([...])`.

    It computes nothing itself; what holds it calls its modules.
    """

    def __init__(self, modules: Iterable[Part] = ()) -> None:
        self._set_parts(modules)

    def _of(self, parts: list[Module]) -> ModuleList:
        return ModuleList(parts)

    def constructor_arguments(self) -> Arguments:
        """The modules of now."""
        own = type(self).__init__ is ModuleList.__init__
        return ((list(self),), {}) if own else super().constructor_arguments()


class ModuleDict(Module):
    """Modules that another one holds by name, as in a dict: `nn.ModuleDict({"left": ..., "right": ...})`.

    It computes nothing itself; what holds it calls its modules.
    """

    def __init__(self, modules: Mapping[str, Part] | Iterable[tuple[str, Part]] = ()) -> None:
        self.update(modules)

    def update(self, modules: Mapping[str, Part] | Iterable[tuple[str, Part]]) -> None:
        """Add or replace modules."""
        try:
            found = dict(modules)
        except (TypeError, ValueError) as error:
            raise OperandError(f"modules is {type(modules).__name__}, expected a mapping from names to modules",
                               operator="ModuleDict") from error
        for name, module in found.items():
            self[name] = module

    def constructor_arguments(self) -> Arguments:
        """The modules of now."""
        own = type(self).__init__ is ModuleDict.__init__
        return ((dict(self.items()),), {}) if own else super().constructor_arguments()

    def _held(self) -> dict[str, Module]:
        guarded(self._read_version)
        return {name: x for name, x in vars(self).items() if isinstance(x, Module)}

    def __setitem__(self, name: str, module: Part) -> None:
        if not isinstance(name, str) or not name or "." in name or hasattr(ModuleDict, name) or name.startswith("_"):
            raise AttributeValueError(f"{name!r} cannot be the name of a module: expected a text without dots "
                                      "that is no attribute of ModuleDict", operator="ModuleDict",
                                      hint="choose another name")
        setattr(self, name, _as_module(module))

    def __getitem__(self, name: str) -> Any:
        return self._held()[name]

    def __delitem__(self, name: str) -> None:
        delattr(self, self._known(name))

    def _known(self, name: str) -> str:
        if name not in self._held():
            raise KeyError(name)
        return name

    def pop(self, name: str) -> Module:
        """Take a module out."""
        found: Module = self[name]
        del self[name]
        return found

    def keys(self) -> Iterable[str]:
        """Names in order."""
        return self._held().keys()

    def values(self) -> Iterable[Module]:
        """Modules in order."""
        return self._held().values()

    def items(self) -> ItemsView[str, Module]:
        """Pairs of name and module, in order."""
        return self._held().items()

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())

    def __contains__(self, name: object) -> bool:
        return name in self._held()


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


def _as_module(part: Any) -> Module:
    return part if isinstance(part, Module) else Lambda(part)
