"""Results of modules without computing them: forward is run once on symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from nnc_core.base.dtype import DType
from nnc_core.base.errors import OperandError, SymbolicDimensionError
from nnc_core.functions.creation import shape_given
from nnc_core.nn.tree import ModuleNode, entries, walk
from nnc_core.stacks import Stack
from nnc_core.type import Dim, TensorSpec, admit_numpy, default_float
from nnc_core.values.cell import Cell
from nnc_core.values.modes import current_stack, stack_named, tracing
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import Trace
from nnc_core.values.tree import flatten, unflatten
from nnc_core.values.value import Value

Watcher: TypeAlias = Callable[[ModuleNode, Any], None]
watcher: ContextVar[Watcher | None] = ContextVar("nnc_module_watcher", default=None)
"""Called with each module that was called, and what it gave."""


@contextmanager
def watching(called: Watcher) -> Iterator[None]:
    """`called` hears of every call of a module, until the end of the block however it ends."""
    token = watcher.set(called)
    try:
        yield
    finally:
        watcher.reset(token)


def as_spec(x: Any, dtype: Any = None) -> TensorSpec:
    """A spec, or that of a tensor, or one with this shape of numbers, names and `Dim`s and the default float."""
    if isinstance(x, TensorSpec):
        return x
    if isinstance(x, Tensor):
        return x.spec
    if not isinstance(x, (tuple, list)):
        raise OperandError(f"{x!r} is no shape", hint='give a tuple such as ("batch", 28, 28, 1), an nnc.TensorSpec or '
                                                      "a tensor")
    wanted: DType = default_float() if dtype is None else admit_numpy(dtype)
    return TensorSpec(shape_given([Dim(d) if isinstance(d, str) else d for d in x]), wanted)


def stack_beneath(module: ModuleNode) -> Stack:
    """The stack that holds the weights, or the current one."""
    for place in walk(module):
        for _, x in entries(place.module):
            if isinstance(x, Cell):
                return stack_named(x.device)
    return current_stack()


def inferred(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of module(*args, **kwargs), with a spec for each tensor; specs that are given stand for tensors.

    Forward runs once; nothing is computed, and no state changes.  Raises what forward raises.
    """
    stack, trace = stack_beneath(module), Trace(type(module).__name__)
    leaves, structure = flatten((args, kwargs), sort=False)
    given = [_argument(trace, stack, x) if isinstance(x, TensorSpec) else x for x in leaves]
    args, kwargs = unflatten(structure, iter(given))
    try:
        with tracing(trace):
            result = module(*args, **kwargs)
    except SymbolicDimensionError as error:
        error.locate(operator=type(module).__name__, hint="give sizes as numbers")
        raise
    finally:
        trace.ended = True
    found, structure = flatten(result)
    return unflatten(structure, iter([x.spec if isinstance(x, Tensor) else x for x in found]))


def _argument(trace: Trace, stack: Stack, spec: TensorSpec) -> Tensor:
    return trace.argument(Value(None, stack, spec))
