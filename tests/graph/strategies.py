"""Random graphs: many operators, mixed dtypes, broadcasting, movement, sharing, constants that rewrites look for.

A graph is grown by adding operators to a pool of nodes.  An operator whose rule refuses the operands that were chosen
adds nothing, so every step may try anything.  Hypothesis draws a seed and the number of steps, which it shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import Error
from nnc_core.operator import Nodes
from nnc_core.symbol import Literal, Node, Number
from nnc_core.type import TensorSpec
from tests.graph.stack import new_namespace

MAIN_DTYPES = [dt.float32, dt.float64, dt.int32, dt.boolean, dt.uint8, dt.float16, dt.bfloat16, dt.int64]
SHAPES = [(), (1,), (3,), (2, 3), (2, 3), (1, 3), (2, 1), (3, 3), (2, 1, 3), (0, 3), (1, 2, 3)]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, float("nan"), float("inf"), float("-inf"), 1e-40, 7.25]
NUMBERS = [0, 1, -1, 2, 0.0, -0.0, 1.0, 2.0, 0.5, float("nan"), float("inf"), True, False]
LARGEST = 64  # elements

UNARY = ["negative", "negative", "abs", "sign", "relu", "identity", "copy", "stop_gradient", "sqrt", "exp", "tanh",
         "sigmoid", "sin", "log", "cos"]  # fmt: skip
BINARY = ["add", "add", "subtract", "subtract", "multiply", "multiply", "divide", "maximum", "minimum", "equal",
          "not_equal", "less", "less_equal", "greater", "greater_equal", "floor_divide", "remainder",
          "power"]  # fmt: skip
LOGIC = ["logical_and", "logical_or", "logical_xor"]


class RandomGraph(NamedTuple):
    outputs: list[Node]
    placeholders: list[Node]
    values: Mapping[Node, np.ndarray[Any, Any]]


@st.composite
def random_graphs(draw: st.DrawFn, most_steps: int = 30) -> RandomGraph:
    steps = draw(st.integers(1, most_steps))
    return grow_graph(Random(draw(st.integers(0, 2**32))), steps)


def grow_graph(random: Random, steps: int) -> RandomGraph:
    """The outputs are the nodes that nothing uses, and one more."""
    F, dtype = new_namespace(), random.choice(MAIN_DTYPES)
    placeholders = [F.placeholder(f"p{i}", _any_spec(random, dtype)) for i in range(random.randint(1, 4))]
    pool = [*placeholders, _any_constant(random, F, dtype)]
    for _ in range(steps):
        node = _grown(random, F, pool)
        if node is not None and _size(node) <= LARGEST:
            pool.append(node)
    used = {x for node in pool for x in node.inputs}
    outputs = [node for node in dict.fromkeys(pool) if node not in used]
    values = {p: any_array(random, p.spec) for p in placeholders}
    return RandomGraph([*outputs, random.choice(pool)], placeholders, values)


def _grown(random: Random, F: Nodes, pool: list[Node]) -> Node | None:
    try:
        return random.choice(GROWTHS)(random, F, pool)
    except Error:
        return None


def _any_spec(random: Random, dtype: DType) -> TensorSpec:
    return TensorSpec(random.choice(SHAPES), dtype if random.random() < 0.8 else random.choice(MAIN_DTYPES))


def _any_constant(random: Random, F: Nodes, dtype: DType) -> Node:
    spec = _any_spec(random, dtype)
    return F.constant(Literal(any_array(random, spec)), spec)


def any_array(random: Random, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Values that are easily wrong: zeros of both signs, NaN, infinities, the extremes of integers."""
    chosen = np.array([random.choice(SPECIAL) for _ in range(int(np.prod(spec.static_shape)))], np.float64)
    with np.errstate(all="ignore"):
        out = np.nan_to_num(chosen, nan=3, posinf=5, neginf=7) if dt.is_integer(spec.dtype) else chosen
        out = out.astype(np.int64).astype(spec.dtype) if dt.is_integer(spec.dtype) else out.astype(spec.dtype)
    if dt.is_integer(spec.dtype):
        out[chosen == 7.25] = np.iinfo(spec.dtype).min
        out[chosen == 0.5] = np.iinfo(spec.dtype).max
    return out.reshape(spec.static_shape)


def _size(node: Node) -> int:
    return int(np.prod(node.spec.static_shape))


def _recent(random: Random, pool: list[Node]) -> Node:
    """Mostly one of the newest, so that operators meet in chains."""
    return random.choice(pool[-4:] if random.random() < 0.7 else pool)


def _unary(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    name = "logical_not" if x.dtype == dt.boolean else random.choice(UNARY)
    return getattr(F, name)(x)


def _binary(random: Random, F: Nodes, pool: list[Node]) -> Node:
    return _pair(random, F, _recent(random, pool), _recent(random, pool))


def _pair(random: Random, F: Nodes, a: Any, b: Any) -> Node:
    dtypes = [x.dtype for x in (a, b) if isinstance(x, Node)]
    name = random.choice(LOGIC if all(d == dt.boolean for d in dtypes) else BINARY)
    return getattr(F, name)(a, b)


def _with_number(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    c = random.choice(NUMBERS)
    number = c if random.random() < 0.5 else _filled(random, F, x, c)
    return _pair(random, F, x, number) if random.random() < 0.6 else _pair(random, F, number, x)


def _filled(random: Random, F: Nodes, x: Node, c: Any) -> Node:
    with np.errstate(all="ignore"):
        shape = random.choice([(), x.shape, x.shape, random.choice(SHAPES)])
        return F.filled(shape=shape, number=Number(c, x.dtype))


def _zeros(random: Random, F: Nodes, pool: list[Node]) -> Node:
    return _filled(random, F, random.choice(pool), random.choice(NUMBERS))


def _where(random: Random, F: Nodes, pool: list[Node]) -> Node:
    condition = _recent(random, pool)
    if condition.dtype != dt.boolean:
        condition = F.greater(condition, 0)
    if random.random() < 0.2:
        condition = _filled(random, F, condition, random.random() < 0.5)
    a, b = _recent(random, pool), _recent(random, pool)
    return F.where(condition, a, random.choice([a, b, 0]))


def _cast(random: Random, F: Nodes, pool: list[Node]) -> Node | None:
    x, dtype = _recent(random, pool), random.choice(MAIN_DTYPES)
    # What a float beyond an integer's range becomes is not defined, so nothing can be asked of it.
    return None if dt.is_float(x.dtype) and dt.is_integer(dtype) else F.cast(x, dtype=dtype)


def _reduce(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    axis = tuple(i for i in range(x.ndim) if random.random() < 0.6)
    names = ["sum", "max", "min", *(["mean"] if dt.is_float(x.dtype) else [])]
    name = random.choice(["all", "any"] if x.dtype == dt.boolean else names)
    return getattr(F, name)(x, axis=axis, keepdims=random.random() < 0.5)


def _position(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    f = random.choice([F.argmax, F.argmin])
    return f(x, axis=random.randint(0, 2), keepdims=random.random() < 0.5)


def _softmax(random: Random, F: Nodes, pool: list[Node]) -> Node | None:
    x = _recent(random, pool)
    f = random.choice([F.softmax, F.log_softmax])
    return f(x, axis=x.ndim - 1) if x.ndim and _size(x) else None


def _reshape(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    n = _size(x)
    halves = [(n // 2, 2), (2, n // 2)] if n % 2 == 0 else []
    return F.reshape(x, shape=random.choice([x.shape, (n,), (1, n), (n, 1), (1, *x.shape), *halves]))


def _permute(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    return F.permute(x, axes=tuple(random.sample(range(x.ndim), x.ndim)))


def _flip(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    return F.flip(x, axes=tuple(i for i in range(x.ndim) if random.random() < 0.5))


def _broadcast(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    wide = tuple(random.choice([1, 2, 3]) if d == 1 else d for d in x.shape)
    return F.broadcast_to(x, shape=random.choice([(), (), (1,), (2,)]) + wide)


def _slice(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    whole = random.random() < 0.3
    ends = [(0, d) if whole else sorted((random.randint(0, d), random.randint(0, d))) for d in x.shape]
    return F.slice(x, start=tuple(a for a, _ in ends), stop=tuple(b for _, b in ends),
                   step=tuple(random.choice([1, 1, 2, 3]) for _ in ends))


def _pad(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    low, high, interior = (tuple(random.choice([0, 0, 1]) for _ in x.shape) for _ in range(3))
    return F.pad(x, low=low, high=high, interior=interior, value=1 if dt.is_integer(x.dtype) else 0.0)


def _concat(random: Random, F: Nodes, pool: list[Node]) -> Node | None:
    x = _recent(random, pool)
    if not x.ndim:
        return None
    axis = random.randrange(x.ndim)
    fit = [y for y in pool if y.dtype == x.dtype and _without(y.shape, axis) == _without(x.shape, axis)]
    return F.concat(*random.choices(fit, k=random.randint(1, 3)), axis=axis)


def _without(shape: Any, axis: int) -> tuple[int, ...]:
    return (len(shape), *shape[:axis], *shape[axis + 1 :])


def _matmul(random: Random, F: Nodes, pool: list[Node]) -> Node | None:
    matrices = [x for x in pool if x.ndim >= 2]
    if not matrices:
        return None
    a, b = _recent(random, matrices), _recent(random, matrices)
    if random.random() < 0.5:
        b = F.permute(a, axes=(*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))
    return F.matmul(a, b, transpose_a=random.random() < 0.3, transpose_b=random.random() < 0.3)


def _take(random: Random, F: Nodes, pool: list[Node]) -> Node | None:
    x = _recent(random, pool)
    if not x.ndim or x.shape[0] == 0:
        return None
    n = x.spec.static_shape[0]
    indices = np.array([random.randint(-n, n - 1) for _ in range(random.randint(1, 3))], np.int64)
    return F.take(x, F.constant(Literal(indices), TensorSpec(indices.shape, dt.int64)), axis=0)


def _update(random: Random, F: Nodes, pool: list[Node]) -> Node:
    x = _recent(random, pool)
    start = tuple(random.randint(0, d) for d in x.spec.static_shape)
    part = F.slice(x, start=start, stop=x.shape, step=(1,) * x.ndim)
    return F.update_slice(x, F.flip(part, axes=tuple(range(x.ndim))), start=start, step=(1,) * x.ndim)


def _constant(random: Random, F: Nodes, pool: list[Node]) -> Node:
    return _any_constant(random, F, random.choice(pool).dtype)


Growth = Callable[[Random, Nodes, list[Node]], "Node | None"]
GROWTHS: list[Growth] = [
    _unary, _unary, _unary, _binary, _binary, _binary, _with_number, _with_number, _with_number, _zeros, _constant,
    _where, _cast, _reduce, _reduce, _position, _softmax, _reshape, _permute, _flip, _broadcast, _slice, _pad,
    _concat, _matmul, _matmul, _take, _update,
]  # fmt: skip
