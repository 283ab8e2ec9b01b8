"""Owl's way: symbols are assigned, and evaluated again only where an assignment made them invalid (book 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import uint64
from nnc_core.base.errors import GraphError, OperandError, ShapeError, UnassignedError
from nnc_core.functions.creation import asarray, shape_given
from nnc_core.random.generator import Generator
from nnc_core.recording.symbols import SYMBOLS
from nnc_core.stacks import stack_for
from nnc_core.symbol import show_line
from nnc_core.type import Dim, DimLike, TensorSpec, admit_numpy, default_float
from nnc_core.values.argument_checks import shown
from nnc_core.values.arguments import located, names_itself
from nnc_core.values.modes import computing, current_stack
from nnc_core.values.tensor import Tensor
from nnc_core.values.unshaped import Declaration, Unshaped, text_of
from nnc_core.values.value import Value, made_at, owned

__all__ = [
    "SYMBOLS", "SymbolicGenerator", "assign", "const_arr", "const_elt", "eval_arr", "eval_elt", "freeze",
    "invalidate", "is_assigned", "is_frozen", "is_valid", "unfreeze", "unpack_arr", "unpack_elt", "var_arr", "var_elt",
    "var_random",
]  # fmt: skip


# ---- leaves
@located
def var_arr(name: str, shape: Sequence[DimLike | str] | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """A placeholder for an array: operations on it build a graph.

    A dimension may be a `nnc.Dim`, or its name; then everything that is built on it follows the size that is assigned.
    Without a shape even the number of dimensions is unknown: what is called with the symbol is recorded, and shapes are
    inferred when it is assigned, again for each shape.  Until then Python is told no shape (`x.shape`, `len(x)`).
    Without a dtype it is `config.default_float`, to which what is assigned is cast.
    """
    if not isinstance(name, str):
        raise OperandError(f"name is {shown(name)}, expected a text", hint='nnc.var_arr("x", (2, 3))')
    if isinstance(shape, str):
        raise OperandError(f"shape is the text {shape!r}, expected a sequence of sizes or their names",
                           hint=f"shape=({shape!r},), or dtype={shape!r}")
    stack = current_stack() if device is None else stack_for(device)
    dtype = stack.type.admit(default_float() if dtype is None else admit_numpy(dtype))
    if shape is None:
        unshaped = Unshaped(stack, SYMBOLS, declared=Declaration(name, dtype))
        SYMBOLS.names[unshaped] = name
        return Tensor(unshaped)
    dims = shape_given([Dim(d) if isinstance(d, str) else d for d in shape])
    return Tensor(_placeholder(name, TensorSpec(dims, dtype), stack))


def _placeholder(name: str, spec: TensorSpec, stack: Any) -> Value:
    value = Value(None, stack, spec, None, False, SYMBOLS)
    SYMBOLS.names[value] = name
    return value


@names_itself
def var_elt(name: str, dtype: Any = None, device: Any = None) -> Tensor:
    """A placeholder for a number."""
    return var_arr(name, (), dtype, device)


@located
def const_arr(x: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """An array as a constant of graphs."""
    return asarray(x, dtype=dtype, device=device)


@located
def const_elt(x: float, dtype: Any = None, device: Any = None) -> Tensor:
    """A number as a constant of graphs."""
    return asarray(x, dtype=default_float() if dtype is None else dtype, device=device)


class SymbolicGenerator(Generator):
    """A generator whose draws are symbols: each evaluation draws anew, and what depends on a draw is invalid then."""

    def _next_key(self) -> Value:
        held = self.key.lend()
        key = _placeholder("random", TensorSpec((2,), uint64), held.stack)
        SYMBOLS.generators[key] = self
        return key

    def draw(self) -> Value:
        """A key that no draw has used."""
        return super()._next_key()


@located
def var_random(seed: int = 0, device: Any = None) -> SymbolicGenerator:
    """A source of random symbols: `.uniform(shape)`, `.normal(shape)`, `.bernoulli(p, shape)`, `.bits(shape)`."""
    return SymbolicGenerator(seed, device=(current_stack() if device is None else stack_for(device)).device.spec.id)


# ---- values
def placeholder_of(t: Any) -> Value:
    """The placeholder that a tensor is, of unknown shape too; GraphError for any other."""
    if not isinstance(t, Tensor):
        raise OperandError(f"{type(t).__name__} is no tensor", hint="give what nnc.var_arr gave")
    v = t._value
    if v.trace is not SYMBOLS or v.step is not None:
        raise GraphError(f"{t!r} is no placeholder", line=made_at(v),
                         hint="assign what nnc.var_arr or nnc.var_elt gave")
    return v


def _value(t: Any) -> Value:
    """The value of a tensor; of a symbol of unknown shape what stands for it with what is assigned."""
    if not isinstance(t, Tensor):
        raise OperandError(f"{type(t).__name__} is no tensor", hint="give what nnc.var_arr gave or was built on it")
    return SYMBOLS.standing_for(t._value)


@located
def assign(symbol: Tensor, x: Any) -> None:
    """Give a placeholder a value: a copy, cast to its dtype.  Whatever depends on it is evaluated anew when asked for.

    Another shape than the declared one is allowed as long as the operations in between take it and hold no size that
    was declared, and Python has not been given one (`x.shape`, `len(x)`), whose numbers would not follow.
    """
    v = placeholder_of(symbol)
    with computing():
        given = asarray(x, dtype=v.dtype, device=v.stack).realize()
    if isinstance(v, Unshaped):
        _check_thawed(v)
        SYMBOLS.assign_shape(v, owned(given._value).array)
        return
    if given.ndim != v.ndim:
        raise ShapeError(f"symbol {SYMBOLS.names[v]!r} {v.spec} cannot take a value of {given.ndim} dimensions")
    if v in SYMBOLS.sizes_read and given.shape != v.shape:
        raise ShapeError(f"symbol {SYMBOLS.names[v]!r} {v.spec} cannot take a value of shape {given.shape}: "
                         f"Python has read its size, at {show_line(SYMBOLS.sizes_read[v])}, and what it made of it "
                         "would not follow",
                         hint='declare the size as a nnc.Dim, or by its name: nnc.var_arr("x", ("n", 2))')
    _check_thawed(v)
    SYMBOLS.assign(v, owned(given._value).array)


def _check_thawed(v: Value) -> None:
    if v in SYMBOLS.frozen or (isinstance(v, Unshaped) and v.pinned is not None):
        raise GraphError(f"symbol {SYMBOLS.names[v]!r} is frozen", hint="nnc.unfreeze(symbol) first")


@located
def is_assigned(symbol: Tensor) -> bool:
    """True if a placeholder has a value."""
    v = placeholder_of(symbol)
    return v.declared is not None and v.declared.now is not None if isinstance(v, Unshaped) else v in SYMBOLS.known


@located
def is_valid(t: Tensor) -> bool:
    """True if a symbol has a value that belongs to what is assigned now."""
    v = standing(t)
    return v is not None and SYMBOLS.is_valid(v)


def is_waiting(t: Tensor) -> bool:
    """True if the shape of a symbol cannot be known yet, since what it was made of is not assigned."""
    v = t._value if isinstance(t, Tensor) else None
    return isinstance(v, Unshaped) and v.pinned is None and not all(
        leaf.declared is not None and leaf.declared.now is not None for leaf in v.leaves)


def standing(t: Tensor) -> Value | None:
    """The value of a tensor; None where its shape cannot be known with what is assigned."""
    try:
        return None if is_waiting(t) else _value(t)
    except (ShapeError, UnassignedError):
        return None


@located
def eval_arr(outputs: Tensor | Sequence[Tensor]) -> None:
    """Evaluate one array or several, as far as they are not valid already; what is random is drawn anew."""
    SYMBOLS.evaluate([_value(t) for t in ([outputs] if isinstance(outputs, Tensor) else outputs)])


eval_elt = eval_arr


@located
def unpack_arr(t: Tensor) -> np.ndarray[Any, Any]:
    """The evaluated value on the host; UnassignedError if it was not evaluated since what it depends on changed."""
    if is_waiting(t):
        raise UnassignedError(f"the symbol {text_of(t._value)} has not been evaluated", line=made_at(t._value),
                              hint="nnc.assign what it was made of, then nnc.eval_arr([...])")
    v = _value(t)
    if v.trace is None:
        return Tensor(v).numpy()
    with SYMBOLS.lock:
        known = SYMBOLS.known.get(v)
        valid = SYMBOLS.is_valid(v)
    if known is None or not valid:
        why = "has not been evaluated" if known is None else "has not been evaluated since it became invalid"
        raise UnassignedError(f"{v.spec} {why}", line=made_at(v), hint="nnc.eval_arr([...]) first")
    host: np.ndarray[Any, Any] = v.stack.engine.executor.download(known.array)
    return host


@located
def unpack_elt(t: Tensor) -> float | int | bool:
    """The evaluated number."""
    found = unpack_arr(t)
    if found.size != 1:
        raise ShapeError(f"{t.spec} has not exactly one element", hint="nnc.unpack_arr(t) gives the array")
    return found.item()  # type: ignore[no-any-return]


@located
def invalidate(*symbols: Tensor) -> None:
    """Let symbols, and all that depends on them, be evaluated anew though nothing was assigned: where functions of the
    host (`nnc.delay`, `nnc.host_map`) read what has changed."""
    for t in symbols:
        v = standing(t)
        if v is None or v.trace is None:
            continue
        if v in SYMBOLS.frozen:
            raise GraphError(f"a symbol {text_of(v)} is frozen", line=made_at(v), hint="nnc.unfreeze(symbol) first")
        SYMBOLS.invalidate(v)


# ---- freezing
@located
def freeze(*symbols: Tensor) -> None:
    """Keep the values that these symbols have, whatever is assigned or drawn, until `unfreeze`."""
    for t in symbols:
        v = _value(t)
        if v.trace is None:
            continue  # it never changes
        if not SYMBOLS.is_valid(v):
            raise UnassignedError(f"{v.spec} has no valid value to keep", line=made_at(v),
                                  hint="assign or nnc.eval_arr([...]) it first")
        SYMBOLS.pin(t._value, v)


@located
def unfreeze(*symbols: Tensor) -> None:
    """Let symbols follow what they depend on again."""
    with SYMBOLS.lock:
        for t in symbols:
            SYMBOLS.unpin(t._value)
        SYMBOLS.changes += 1


@located
def is_frozen(t: Tensor) -> bool:
    """True if a symbol keeps its value."""
    return standing(t) in SYMBOLS.frozen

