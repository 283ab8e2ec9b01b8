"""Random ONNX graphs: chains of operators on one input, shapes computed from shapes among them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from tests.io.onnx.models import model, node, value

MOST = 300
"""Elements that a value may have."""
LARGEST = 1e4


class RefusedError(Exception):
    """A step that does not fit the values that are there."""


@dataclass
class Building:
    """A graph while it grows: each step is computed by ONNX' reference, which refuses what is no graph."""

    draw: Callable[[Any], Any]
    values: dict[str, Any] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initialisers: dict[str, Any] = field(default_factory=dict)

    def constant(self, array: Any) -> str:
        name = f"c{len(self.initialisers)}"
        self.initialisers[name] = self.values[name] = np.asarray(array)
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.asarray(numbers, np.int64))

    def add(self, operator: str, *inputs: str, count: int = 1, **attributes: Any) -> str:
        """The name of a node's first output.  Raises RefusedError for a node that the reference refuses."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        made = node(operator, " ".join(inputs), " ".join(names), **attributes)
        feeds = {name: self.values[name] for name in inputs}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                results = ReferenceEvaluator(made).run(None, feeds)
            except Exception as error:
                raise RefusedError(f"{operator} is refused") from error
        if any(x.size > MOST or not np.all(np.abs(x) < LARGEST) for x in results):
            raise RefusedError(f"{operator} is too large")
        self.nodes.append(made)
        self.values.update(zip(names, results, strict=True))
        return names[0]


Step = Callable[[Building, str], str]
"""Adds nodes that read a value; gives the name of their result."""


def named(operator: str, **attributes: Any) -> Step:
    return lambda b, x: b.add(operator, x, **attributes)


def axis_of(b: Building, x: str) -> int:
    rank = b.values[x].ndim
    if not rank:
        raise RefusedError("a scalar has no axis")
    return int(b.draw(st.integers(-rank, rank - 1)))


def operand(b: Building, x: str) -> str:
    """Another value of the same dtype, or a constant that broadcasts with it."""
    dtype, shape = b.values[x].dtype, b.values[x].shape
    others = [n for n, v in b.values.items() if v.dtype == dtype and n not in b.initialisers]
    if b.draw(st.booleans()):
        return str(b.draw(st.sampled_from(others)))
    kept = shape[b.draw(st.integers(0, len(shape))):]
    kept = tuple(n if b.draw(st.booleans()) else 1 for n in kept)
    return b.constant(b.draw(st.integers(-2, 3)) + np.arange(np.prod(kept), dtype=dtype).reshape(kept) % 3)


def binary(operator: str) -> Step:
    def step(b: Building, x: str) -> str:
        pair = [x, operand(b, x)]
        return b.add(operator, *(pair[::-1] if b.draw(st.booleans()) else pair))
    return step


def chosen(b: Building, x: str) -> str:
    other = operand(b, x)
    return b.add("Where", b.add("Less", x, other), other, x)


def reduction(operator: str) -> Step:
    def step(b: Building, x: str) -> str:
        rank = b.values[x].ndim
        axes = b.draw(st.lists(st.integers(0, max(rank - 1, 0)), unique=True, max_size=rank))
        axes = [a - rank if b.draw(st.booleans()) else a for a in axes]
        inputs = (x, b.ints(*axes)) if axes or b.draw(st.booleans()) else (x,)
        return b.add(operator, *inputs, keepdims=int(b.draw(st.booleans())))
    return step


def transpose(b: Building, x: str) -> str:
    return b.add("Transpose", x, perm=b.draw(st.permutations(range(b.values[x].ndim))) or None)


def unsqueeze(b: Building, x: str) -> str:
    rank = b.values[x].ndim
    return b.add("Unsqueeze", x, b.ints(b.draw(st.integers(-rank - 1, rank))))


def squeeze(b: Building, x: str) -> str:
    return b.add("Squeeze", x, b.ints(axis_of(b, x))) if b.draw(st.booleans()) else b.add("Squeeze", x)


def cut(b: Building, x: str) -> str:
    bound = st.one_of(st.integers(-6, 6), st.sampled_from([2**31 - 1, -2**31 + 1, 2**63 - 1, -2**63 + 1]))
    numbers = [b.draw(bound), b.draw(bound), axis_of(b, x), b.draw(st.sampled_from([1, 1, 2, -1, -2]))]
    size = b.values[x].shape[numbers[2]]
    if numbers[3] < 0 and numbers[0] < -size:
        raise RefusedError("the reference does not bring a start before the first element up to it")
    return b.add("Slice", x, *map(b.ints, numbers))


def padded(b: Building, x: str) -> str:
    widths = [b.draw(st.integers(0, 2)) for _ in range(2 * b.values[x].ndim)]
    return b.add("Pad", x, b.ints(*widths), b.constant(np.asarray(3, b.values[x].dtype)))


def joined(b: Building, x: str) -> str:
    return b.add("Concat", x, x, axis=axis_of(b, x))


def gathered(b: Building, x: str) -> str:
    axis = axis_of(b, x)
    size = b.values[x].shape[axis]
    index = st.integers(-size, size - 1) if size else st.nothing()
    found = b.draw(st.one_of(index, st.lists(index, max_size=3), st.lists(st.tuples(index, index), min_size=1,
                                                                          max_size=2)) if size else st.just([]))
    return b.add("Gather", x, b.constant(np.asarray(found, np.int64)), axis=axis)


def tiled(b: Building, x: str) -> str:
    return b.add("Tile", x, b.ints(*(b.draw(st.integers(0, 2)) for _ in range(b.values[x].ndim))))


def halves(b: Building, x: str) -> str:
    return b.add("Split", x, count=2, axis=axis_of(b, x), num_outputs=2)


def softmax(b: Building, x: str) -> str:
    return b.add("Softmax", x, axis=axis_of(b, x))


# ---- shapes of shapes
def rows(b: Building, x: str) -> str:
    """As exporters write a flattening: the first size, and the rest."""
    first = b.add("Gather", b.add("Shape", x), b.constant(np.int64(0)))
    shape = b.add("Concat", b.add("Unsqueeze", first, b.ints(0)), b.ints(-1), axis=0)
    return b.add("Reshape", x, shape)


def merged(b: Building, x: str) -> str:
    """The first axes as one, by the product of their sizes."""
    shape = b.add("Shape", x)
    count = b.draw(st.integers(0, b.values[x].ndim))
    size = b.add("ReduceProd", b.add("Slice", shape, b.ints(0), b.ints(count)), keepdims=1)
    return b.add("Reshape", x, b.add("Concat", size, b.add("Slice", shape, b.ints(count), b.ints(99)), axis=0))


def turned(b: Building, x: str) -> str:
    """The sizes in reverse, without a movement of elements."""
    parts = b.add("Slice", b.add("Shape", x), b.ints(-1), b.ints(-99), b.ints(0), b.ints(-1))
    return b.add("Reshape", x, parts)


def filled(b: Building, x: str) -> str:
    number = onnx.numpy_helper.from_array(np.asarray([2], b.values[x].dtype))
    return b.add("Add", x, b.add("ConstantOfShape", b.add("Shape", x), value=number))


def counted(b: Building, x: str) -> str:
    """Positions along the last axis added."""
    last = b.add("Squeeze", b.add("Shape", x, start=-1))
    places = b.add("Range", b.constant(np.int64(0)), last, b.constant(np.int64(1)))
    return b.add("Add", x, b.add("CastLike", places, x))


def spread(b: Building, x: str) -> str:
    two = b.add("Mul", b.add("Shape", x), b.ints(*[1] * b.values[x].ndim))
    return b.add("Mul", b.add("Expand", b.constant(np.ones((), b.values[x].dtype)), two), x)


def averaged(b: Building, x: str) -> str:
    """Divided by its number of elements."""
    return b.add("Div", x, b.add("CastLike", b.add("Size", x), x))


BOTH: list[Step] = [
    named("Relu"), named("Neg"), named("Abs"), named("Identity"), *map(binary, ("Add", "Sub", "Mul", "Max", "Min")),
    chosen, *map(reduction, ("ReduceSum", "ReduceMax", "ReduceMin")), transpose, unsqueeze, squeeze, cut, padded,
    joined, gathered, tiled, halves, rows, merged, turned, filled, counted, spread, averaged]
FLOATS: list[Step] = [*map(named, ("Tanh", "Sigmoid", "Softplus", "Erf")), *map(reduction, (
    "ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")), softmax, named("Flatten", axis=-1)]


@st.composite
def random_models(draw: Any) -> tuple[onnx.ModelProto, Mapping[str, Any]]:
    """A model of one input, whose first size is called "n", and a value for it."""
    dtype = draw(st.sampled_from([np.float32, np.float32, np.int64]))
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 3, 4, 0]), max_size=3)))
    x = draw(st.integers(0, 100)) % 7 + np.arange(np.prod(shape), dtype=dtype).reshape(shape) % 5 - 3
    b = Building(draw, {"x": np.asarray(x * np.asarray(0.5 if dtype == np.float32 else 1, dtype), dtype)})
    last = "x"
    for step in draw(st.lists(st.sampled_from(BOTH + FLOATS * (dtype == np.float32)), min_size=1, max_size=6)):
        try:
            last = step(b, last)
        except RefusedError:
            continue
    result = b.add("Identity", last)
    message = model(b.nodes, [value("x", dtype, ["n", *shape[1:]] if shape else [])],
                    [value(result, b.values[result].dtype, None)], b.initialisers, 21)
    return message, {"x": b.values["x"]}
