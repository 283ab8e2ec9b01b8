"""NNC's 69 commands, forward and backward, one by one: what each is here, run by `test_nnc_commands`.

A backward command is the gradient of the forward one.  It is held to difference quotients of the NumPy code, or to
a formula where there is one to say; where NNC has the name but accepts no inputs for it, that is said.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

import nnc_core as nnc
from tests.house.nnc_compression import restored, squeezed, squeezed_host
from tests.house.nnc_networks import COMMANDS as NETWORKS
from tests.house.nnc_regions import COMMANDS as REGIONS
from tests.house.nnc_rows import NO_INPUT, NO_PATTERN, Backward, Command, command, drawn, last_axis_pairs
from tests.house.nnc_steps import COMMANDS as STEPS
from tests.house.rows import Array, Row

_RNG = np.random.default_rng(11)
X, Y, Z = (_RNG.uniform(-2, 2, (3, 4)) for _ in range(3))
ROW, POSITIVE = _RNG.uniform(-2, 2, (1, 4)), _RNG.uniform(0.3, 2, (3, 4))
IMAGE = _RNG.uniform(-1, 1, (2, 3, 4, 2))
COUNT = 40_000
ELSEWHERE = "strict:0"

ELEMENTWISE: dict[str, Command] = {
    "ADD": command("multiply, add", lambda a, b: 0.5 * a + 1.5 * b, X, ROW, note="p a + q b"),
    "MUL": command("multiply", lambda a, b: 0.5 * a * b, X, ROW, note="p a b"),
    "SCALAR_MUL": command("multiply", lambda a: 1.5 * a, X),
    "CMUL": Command(Row("complex, multiply, real, imag", lambda a, b: last_axis_pairs(nnc, a, b),
                        lambda a, b: last_axis_pairs(np, a, b), (X, ROW),
                        "complex numbers are a dtype; NNC has pairs along the last axis"), Backward((0, 1))),
    "EWSUM": command("add", lambda a, b, c: a + b + c, X, Y, Z, note="of any number"),
    "EWPROD": command("multiply", lambda a, b, c: a * b * c, X, Y, Z, note="of any number"),
    "EWDIV": command("divide", lambda a, b: a / b, X, POSITIVE, note="without a numerator: reciprocal"),
    "EWEXP": Command(Row("exp", nnc.exp, np.exp, (X,)), Backward((0,))),
    "EWLOG": Command(Row("log", nnc.log, np.log, (POSITIVE,)), Backward((0,))),
    "EWSQRT": Command(Row("sqrt", nnc.sqrt, np.sqrt, (POSITIVE,)), Backward((0,))),
    "CLAMP": Command(Row("clip", lambda x: nnc.clip(x, -1.0, 0.5), lambda x: np.clip(x, -1, 0.5), (X,),
                         "an end that is NaN in NNC is None here"), Backward((0,))),
    "MAX": Command(Row("maximum", nnc.maximum, np.maximum, (X, Y), "of equal numbers each has half of the gradient"),
                   Backward((0, 1))),
    "MIN": Command(Row("minimum", nnc.minimum, np.minimum, (X, Y), "of equal numbers each has half of the gradient"),
                   Backward((0, 1))),
    "RELU": Command(Row("relu", nnc.relu, lambda x: np.maximum(x, 0), (X,)), Backward((0,))),
    "LEAKY_RELU": Command(Row("leaky_relu", lambda x: nnc.leaky_relu(x, slope=0.2),
                              lambda x: np.where(x > 0, x, 0.2 * x), (X,)), Backward((0,))),
    "SIGMOID": Command(Row("sigmoid", nnc.sigmoid, special.expit, (X,)), Backward((0,))),
    "TANH": Command(Row("tanh", nnc.tanh, np.tanh, (X,)), Backward((0,))),
    "SWISH": Command(Row("swish", nnc.swish, lambda x: x * special.expit(x), (X,)), Backward((0,))),
    "GELU": Command(Row("gelu", lambda x: nnc.stack([nnc.gelu(x), nnc.gelu(x, approximate="tanh")]),
                        lambda x: np.stack([x * special.ndtr(x), _gelu_by_tanh(x)]), (X,)), Backward((0,))),
    "MASKED_FILL": Command(Row("masked_fill", lambda a, b: nnc.masked_fill(a, b == 1, 7.0),
                               lambda a, b: np.where(b == 1, 7.0, a), (X, np.arange(12).reshape(3, 4) % 3),
                               "the mask is boolean; NNC compares another array with a number"), Backward((0,))),
    "SET": Command(Row("full", lambda: nnc.full((3, 4), 2.5), lambda: np.full((3, 4), 2.5)),
                   Backward(why_not=NO_INPUT)),
}  # fmt: skip


def _gelu_by_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


# ---- reductions
def _reduced(ours: str, note: str = "") -> Command:
    return Command(Row(ours, lambda x: getattr(nnc, ours)(x, axis=(0, 2), keepdims=True),
                       lambda x: getattr(np, ours)(x, axis=(0, 2), keepdims=True), (IMAGE,), note), Backward((0,)))


def _position(ours: str) -> Command:
    return Command(Row(ours, lambda x: getattr(nnc, ours)(x, axis=1, keepdims=True),
                       lambda x: getattr(np, ours)(x, axis=1, keepdims=True), (X,), "int64 here, int32 in NNC"),
                   Backward(why_not=NO_PATTERN))


def _norm(xp: Any, x: Any) -> Any:
    return xp.linalg.vector_norm(x, axis=(0, 2), keepdims=True)


EDGES, BINS = np.linspace(-1.0, 1.0, 6), 5
SAMPLE = np.array([-3.0, -1.0, -0.99, 0.0, 0.2, 0.59, 0.6, 0.99, 1.0, 5.0, np.nan])


def _counts(x: Any) -> Any:
    """Below, in equal parts of [-1, 1), from 1 on, NaN; and smallest, largest, sum and sum of squares of the rest."""
    places = nnc.where(nnc.isnan(x), BINS + 2, nnc.searchsorted(nnc.asarray(EDGES), x, side="right"))
    known = nnc.where(nnc.isnan(x), 0.0, x)
    return [nnc.bincount(places, length=BINS + 3), nnc.stack([nnc.min(known), nnc.max(known), nnc.sum(known),
                                                              nnc.sum(nnc.square(known))])]  # fmt: skip


def _counts_host(x: Array) -> Any:
    known = x[~np.isnan(x)]
    inside = [np.sum((a <= known) & (known < b)) for a, b in pairwise(EDGES)]
    counts = [np.sum(known < -1), *inside, np.sum(known >= 1), np.sum(np.isnan(x))]
    return [np.array(counts), np.array([known.min(), known.max(), known.sum(), (known**2).sum()])]


REDUCTIONS: dict[str, Command] = {
    "REDUCE_SUM": _reduced("sum"), "REDUCE_MEAN": _reduced("mean"),
    "REDUCE_MAX": _reduced("max"), "REDUCE_MIN": _reduced("min"),
    "REDUCE_NORM2": Command(Row("linalg.vector_norm", lambda x: _norm(nnc, x), lambda x: _norm(np, x), (IMAGE,)),
                            Backward((0,))),
    "REDUCE_ISNAN": Command(Row("any, isnan", lambda x: nnc.any(nnc.isnan(x), axis=0, keepdims=True),
                                lambda x: np.isnan(x).any(0, keepdims=True),
                                (np.array([[1.0, np.nan], [2.0, 3.0]]),), "booleans here, int32 in NNC"),
                            Backward(why_not=NO_PATTERN)),
    "ARGMAX": _position("argmax"), "ARGMIN": _position("argmin"),
    "HISTOGRAM": Command(Row("searchsorted, bincount", _counts, _counts_host, (SAMPLE,),
                             "`histogram` has no bins for what lies outside; NNC's statistics take NaN with them"),
                         Backward(why_not=NO_PATTERN)),
}  # fmt: skip

# ---- movement
MOVEMENT: dict[str, Command] = {
    "TRANSPOSE": Command(Row("swapaxes", lambda x: nnc.swapaxes(x, 1, 3), lambda x: np.swapaxes(x, 1, 3), (IMAGE,)),
                         Backward((0,))),
    "FORMAT_TRANSFORM": Command(Row("permute_dims", lambda x: nnc.permute_dims(x, (0, 3, 1, 2)),
                                    lambda x: np.moveaxis(x, -1, 1), (IMAGE,),
                                    "a format is an argument (layout) of what needs one, no property of an array"),
                                Backward((0,))),
    "DATATYPE_CONVERSION": Command(Row("astype", lambda x: nnc.astype(x, nnc.float32), lambda x: x.astype(np.float32),
                                       (X,), near=1e-6), Backward((0,), lambda g, x: [g], near=1e-6)),
    "DATA_TRANSFER": Command(Row("Tensor.to", lambda x: x.to(ELSEWHERE), lambda x: x, (X,)),
                             Backward((0,), lambda g, x: [g])),
    "PAD": Command(Row("pad", lambda x: [nnc.pad(x, ((1, 0), (2, 1))), nnc.pad(x, ((1, 0), (2, 1)), mode="edge")],
                       lambda x: [np.pad(x, ((1, 0), (2, 1))), np.pad(x, ((1, 0), (2, 1)), mode="edge")], (X,),
                       "zeros, and the edge repeated"), Backward((0,))),
    "INDEX_SELECT": Command(Row("take", lambda x, i: nnc.take(x, i, axis=0), lambda x, i: x[i],
                                (X, np.array([2, 0, 2]))), Backward((0,))),
    "COMPRESSION_LSSC": Command(Row("min, max, round, bitwise_left_shift", squeezed, squeezed_host, (IMAGE[..., 0],),
                                    "lossy, in blocks of 4 x 4: two numbers and two bits each; a composition here, "
                                    "used by no pass", near=1e-6),
                                Backward(forward=Row("bitwise_and, bitwise_right_shift", restored, lambda x: x,
                                                     (np.where(IMAGE[..., 0] > 0, 1.0, -2.0),),
                                                     "restores: blocks of two values exactly"))),
}  # fmt: skip


# ---- over devices
def _everywhere(x: Any) -> Any:
    return [x.to(device) for device in (ELSEWHERE, x.device)]


def _all_reduced(x: Any, y: Any) -> Any:
    total = x + y.to(ELSEWHERE).to(x.device)
    return _everywhere(total)


OVER_DEVICES = "no command of its own: copies are operators, and one process has all devices"
DEVICES: dict[str, Command] = {
    "COMM_BROADCAST": Command(Row("Tensor.to", _everywhere, lambda x: [x, x], (X,), OVER_DEVICES), Backward((0,))),
    "COMM_REDUCE": Command(Row("Tensor.to, add", lambda x, y: x + y.to(ELSEWHERE).to(x.device), lambda x, y: x + y,
                               (X, Y), OVER_DEVICES), Backward((0, 1))),
    "COMM_ALLREDUCE": Command(Row("Tensor.to, add", _all_reduced, lambda x, y: [x + y] * 2, (X, Y), OVER_DEVICES),
                              Backward((0, 1))),
}  # fmt: skip

RANDOM: dict[str, Command] = {
    "RANDOM_UNIFORM": Command(Row("Generator.uniform", lambda: drawn(nnc.Generator(2).uniform((COUNT,), -1.0, 3.0)),
                                  lambda: [1.0, 4 / 12**0.5], near=0.02), Backward(why_not=NO_INPUT)),
    "RANDOM_NORMAL": Command(Row("Generator.normal", lambda: drawn(nnc.Generator(2).normal((COUNT,), 1.0, 2.0)),
                                 lambda: [1.0, 2.0], near=0.02), Backward(why_not=NO_INPUT)),
}  # fmt: skip

NNC: dict[str, Command] = {**ELEMENTWISE, **REDUCTIONS, **MOVEMENT, **DEVICES, **RANDOM, **NETWORKS, **REGIONS, **STEPS}
