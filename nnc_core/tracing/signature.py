"""Distinctions between calls of a compiled function: the signature of its arguments, and their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.config import config
from nnc_core.base.errors import AttributeValueError, OperandError
from nnc_core.stacks import Stack
from nnc_core.type import Dims
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import _stack
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import Structure, flatten, unflatten


class TensorKey(NamedTuple):
    """A tensor in a signature."""

    shape: Dims
    dtype: Any
    stack: Stack
    twin: int = -1
    """Number of the leaf that is the very same tensor, if one before is: code may ask `a is b`."""

    def __str__(self) -> str:
        also = f", the tensor of leaf {self.twin} again" if self.twin >= 0 else ""
        return f"{self.dtype}[{','.join(map(str, self.shape))}] on {self.stack.device.spec.id}{also}"


class StaticKey:
    """Anything else in a signature: equal if nothing can tell them apart."""

    __slots__ = ("bits", "type", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.type, self.bits = value, type(value), _bits(value)
        hash(self.bits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticKey) and self.type is other.type and bool(self.bits == other.bits)

    def __hash__(self) -> int:
        return hash((self.type, self.bits))

    def __str__(self) -> str:
        text = repr(self.value)
        return text if len(text) <= 60 else f"{text[:57]}..."


class Ambient(NamedTuple):
    """Settings that traced code depends on besides its arguments."""

    deterministic: bool
    fusion: bool
    default_float: str
    default_device: str | None
    matmul_precision: str
    stack: Stack | None


def ambient() -> Ambient:
    return Ambient(*config.of_traces, _stack.get())


class Signature(NamedTuple):
    """Calls of equal signatures are traced alike."""

    ambient: Ambient
    structure: Structure
    leaves: tuple[TensorKey | StaticKey, ...]

    @property
    def shapes(self) -> tuple[Dims, ...]:
        return tuple([x.shape for x in self.leaves if isinstance(x, TensorKey)])

    @property
    def family(self) -> Hashable:
        """The signature without the sizes."""
        return (self.ambient, self.structure,
                tuple([(len(x.shape), *x[1:]) if isinstance(x, TensorKey) else x for x in self.leaves]))

    @property
    def but_shapes(self) -> Hashable:
        """The signature without any shapes."""
        return (self.ambient, self.structure,
                tuple([x[1:] if isinstance(x, TensorKey) else x for x in self.leaves]))


class Static:
    """A whole argument that is declared static: a leaf of the arguments, whatever is in it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Arguments(NamedTuple):
    """The arguments of one call, taken apart."""

    leaves: list[Any]
    structure: Structure
    tensors: list[Tensor]

    def signature(self, labels: Callable[[], Sequence[str]]) -> Signature:
        """OperandError names an argument that is neither a tensor nor hashable; `labels` names the leaves."""
        keys: list[TensorKey | StaticKey] = []
        first: dict[int, int] = {}
        for i, x in enumerate(self.leaves):
            if isinstance(x, Tensor):
                v = x._value
                at = first.setdefault(id(x), i)
                keys.append(TensorKey(v.spec.shape, v.spec.dtype, v.stack, -1 if at == i else at))
                continue
            if isinstance(x, Static) and any(isinstance(y, Tensor) for y in flatten(x.value)[0]):
                raise OperandError(f"the static argument {labels()[i]} has a tensor in it",
                                   hint="tensors are traced: leave it out of static_argnums")
            try:
                keys.append(key_of(x))
            except TypeError:
                raise _unhashable(x, labels()[i]) from None
        return Signature(ambient(), self.structure, tuple(keys))

    def rebuilt(self, tensors: Iterable[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments with these tensors in the places of the given ones, one that is given twice
        being one again."""
        rest = iter(tensors)
        first: dict[int, Tensor] = {}
        leaves = [first.setdefault(id(x), next(rest)) if isinstance(x, Tensor) else _whole(x) for x in self.leaves]
        args, kwargs = unflatten(self.structure, iter(leaves))
        return args, kwargs

    @property
    def objects(self) -> list[Any]:
        """The leaves that are no tensors."""
        return [_whole(x) for x in self.leaves if not isinstance(x, Tensor)]


def key_of(x: Any) -> StaticKey:
    """The key of a leaf that is no tensor; TypeError if it cannot be hashed."""
    return StaticKey(_whole(x))


def _whole(x: Any) -> Any:
    return x.value if isinstance(x, Static) else x


def _bits(x: Any) -> Hashable:
    """0.0 and -0.0 are equal, and so are 1 and True; a NaN equals nothing: these are told apart by their bits."""
    if isinstance(x, float):
        return x.hex()
    if isinstance(x, complex):
        return x.real.hex(), x.imag.hex()
    if isinstance(x, np.generic):
        return x.dtype, x.tobytes()
    if isinstance(x, tuple):
        return type(x), tuple([(type(y), _bits(y)) for y in x])
    if isinstance(x, (set, frozenset)):
        return type(x), frozenset([(type(y), _bits(y)) for y in x])
    if getattr(type(x), "__hash__", None) is None and is_dataclass(x):
        return tuple([(field.name, type(y), _bits(y)) for field in fields(x) for y in [getattr(x, field.name)]])
    return x  # type: ignore[no-any-return]


def _unhashable(x: Any, label: str) -> OperandError:
    if isinstance(x, Static):
        return OperandError(f"the static argument {label} is a {type(x.value).__name__}, which cannot be hashed",
                            hint="make it a tuple or a frozen dataclass, or leave it out of static_argnums")
    return OperandError(f"argument {label} of type {type(x).__name__} is neither a tensor nor hashable",
                        hint="pass arrays as tensors: nnc.asarray(...)")


class Parameters:
    """The parameters of a function: which are static, which are donated, and what the leaves of a call are called."""

    def __init__(self, f: Callable[..., Any], static: tuple[Any, Any], donated: tuple[Any, Any]) -> None:
        try:
            listed = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):
            listed = []
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.names = [p.name for p in listed if p.kind in positional]
        self.rest = next((p.name for p in listed if p.kind is p.VAR_POSITIONAL), None)
        self.known = bool(listed)
        self.all_names = [p.name for p in listed if p.kind in (*positional, inspect.Parameter.KEYWORD_ONLY)]
        self.free = not listed or any(p.kind is p.VAR_KEYWORD for p in listed)
        """Whether it takes any keywords: their order may matter."""
        self.static = self._chosen("static", *static)
        self.donated = self._chosen("donate", *donated)
        both = self.static & self.donated
        if both:
            raise AttributeValueError(f"argument {min(map(str, both))} is both static and donated")

    def _chosen(self, what: str, numbers: int | Sequence[int], names: str | Sequence[str]) -> frozenset[int | str]:
        """Numbers and names, each parameter under both."""
        chosen: set[int | str] = set()
        for n in (numbers,) if isinstance(numbers, int) else numbers:
            if isinstance(n, bool) or not isinstance(n, int):
                raise AttributeValueError(f"{what}_argnums has {n!r}, which is no integer")
            index = n + len(self.names) if n < 0 else n
            if index < 0 or (self.known and self.rest is None and index >= len(self.names)):
                raise AttributeValueError(f"{what}_argnums has {n}, of {len(self.names)} positional parameters")
            chosen |= {index, self.names[index]} if index < len(self.names) else {index}
        for name in (names,) if isinstance(names, str) else names:
            if self.known and not self.free and name not in self.all_names:
                raise AttributeValueError(f"{what}_argnames has {name!r}, which is no parameter",
                                          hint=f"there are {', '.join(self.all_names)}")
            chosen |= {name, self.names.index(name)} if name in self.names else {name}
        return frozenset(chosen)

    def taken_apart(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """The leaves of the arguments; a static argument is one leaf."""
        if self.static:
            args = tuple([Static(x) if i in self.static else x for i, x in enumerate(args)])
            kwargs = {k: Static(x) if k in self.static else x for k, x in kwargs.items()}
        leaves, structure = flatten((args, dict(kwargs) if self.free else dict(sorted(kwargs.items()))), sort=False)
        leaves = [Tensor(host_value(x)) if isinstance(x, np.ndarray) else x for x in leaves]
        return Arguments(leaves, structure, [x for x in leaves if isinstance(x, Tensor)])

    def labels(self, structure: Structure) -> list[str]:
        """Names of the leaves, as "x" or "params['w'][0]"."""
        positional, keywords = structure.parts
        return [label for i, part in enumerate(positional.parts) for label in paths(part, self._name(i))] + [
            label for k, part in zip(keywords.keys, keywords.parts, strict=True) for label in paths(part, str(k))]

    def arguments(self, structure: Structure) -> list[int | str]:
        """For each leaf the number or the name of the argument that it is part of."""
        positional, keywords = structure.parts
        places: list[tuple[int | str, Structure]] = [*enumerate(positional.parts)]
        places += zip(map(str, keywords.keys), keywords.parts, strict=True)
        return [place for place, part in places for _ in paths(part, "")]

    def _name(self, i: int) -> str:
        if i < len(self.names):
            return self.names[i]
        return f"{self.rest or 'args'}[{i - len(self.names)}]"

    def changes(self, before: Signature, now: Signature) -> list[str]:
        """Differences, as "argument 1 `n`: 3 -> 4"."""
        said = [f"{name.replace('_', ' ')}: {a} -> {b}" for name, a, b in
                zip(Ambient._fields, before.ambient, now.ambient, strict=True) if a != b]
        if before.structure != now.structure:
            return [*said, "the structure of the arguments"]
        labels, places = self.labels(now.structure), self.arguments(now.structure)
        for a, b, label, place in zip(before.leaves, now.leaves, labels, places, strict=True):
            if a != b:
                number = f"argument {place} `{label}`" if isinstance(place, int) else f"argument `{label}`"
                said.append(f"{number}: {a} -> {b}")
        return said


def paths(structure: Structure, prefix: str) -> Iterator[str]:
    """The places of the leaves."""
    kind, keys, parts = structure
    if kind is None:
        yield prefix
        return
    fields = keys if hasattr(kind, "__dataclass_fields__") else getattr(kind, "_fields", None)
    for i, part in enumerate(parts):
        step = f".{fields[i]}" if fields else f"[{keys[i]!r}]" if keys else f"[{i}]"
        yield from paths(part, prefix + step)
