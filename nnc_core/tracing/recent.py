"""Kinds of calls: the next call that is like the last one is known without a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nnc_core.base.config import config
from nnc_core.tracing.signature import Arguments, key_of
from nnc_core.values.modes import _stack
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import Structure

if TYPE_CHECKING:
    from nnc_core.tracing.cache import Entry

_NOTHING = type(None)


class Recent:
    """Calls with nothing but tensors: settings, their specs, and the entry that keeps what is compiled for them."""

    __slots__ = ("_kinds", "_settings", "_stack", "entry")

    def __init__(self, tensors: Sequence[Tensor], entry: Entry) -> None:
        """The tensors have been computed."""
        values = [x._value for x in tensors]
        self._settings, self._stack, self.entry = config.of_traces, _stack.get(), entry
        self._kinds = tuple([(v.spec, v.spec.shape, v.spec.dtype, v.stack) for v in values])

    def arrays(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any] | None:
        """The arrays of a call's arguments; None if it is of another kind, or has a tensor that is not computed, that a
        gradient may be asked through, or that comes twice: code may ask whether it is one."""
        if (kwargs or len(args) != len(self._kinds) or self._stack is not _stack.get()
                or self._settings != config.of_traces):
            return None
        arrays = []
        for x, (spec, shape, dtype, stack) in zip(args, self._kinds):  # noqa: B905 as long, and asked at each call
            if x.__class__ is not Tensor:
                return None
            v = x._value
            array: Any = v.array
            if array is None or v.tracked or v.trace is not None or v.stack is not stack:
                return None
            if v._spec is not spec and (array.dtype is not dtype or array.shape != shape):
                return None
            arrays.append(array)
        return arrays if len(set(args)) == len(args) else None


class RecentTree(Recent):
    """Calls whose arguments have names or parts, or are no tensors."""

    __slots__ = ("_args", "_kwargs", "_names", "_ordered", "_others")

    def __init__(self, arguments: Arguments, ordered: bool, entry: Entry) -> None:
        """`ordered`: the order of keywords counts."""
        super().__init__(arguments.tensors, entry)
        self._args, self._kwargs = arguments.structure.parts
        self._names: tuple[Any, ...] = self._kwargs.keys
        self._ordered = ordered
        self._others = {i: key_of(x) for i, x in enumerate(arguments.leaves) if not isinstance(x, Tensor)}

    def arrays(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any] | None:
        names = self._names
        if len(kwargs) != len(names) or (self._ordered and tuple(kwargs) != names):
            return None
        leaves: list[Any] = []
        try:
            named = [kwargs[name] for name in names]
            if not (_gather(args, self._args.parts, leaves) and _gather(named, self._kwargs.parts, leaves)):
                return None
            for i, key in self._others.items():
                if key_of(leaves[i]) != key:
                    return None
        except (KeyError, TypeError):  # a name that is none of them, and what cannot be a key
            return None
        for i in reversed(self._others):
            del leaves[i]
        return super().arrays(leaves, {})


def _gather(items: Sequence[Any], parts: Sequence[Structure], leaves: list[Any]) -> bool:
    """Add the leaves of items that have these structures; False where one has another."""
    if len(items) != len(parts):
        return False
    for x, (kind, keys, inner) in zip(items, parts):  # noqa: B905 as long, and asked at each call
        if kind is None:
            leaves.append(x)
        elif x.__class__ is not kind:
            return False
        elif kind is dict:
            if tuple(x) != keys or not _gather([*x.values()], inner, leaves):
                return False
        elif kind is list or kind is tuple or hasattr(kind, "_fields"):
            if not _gather(x, inner, leaves):
                return False
        elif kind is not _NOTHING:
            return False
    return True
