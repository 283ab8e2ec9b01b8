"""Owl's 199 operators, one by one: what each is here, run beside NumPy or SciPy by `test_owl_operators`.

An operator that Owl has twice, for arrays and for numbers, is one here: numbers are arrays without dimensions, and
Python numbers stand beside arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import nnc_core as nnc
from tests.house.owl_windows import ROWS as WINDOWS
from tests.house.rows import Array, Row, both

_RNG = np.random.default_rng(3)
X, Y, Z = (_RNG.uniform(-2.5, 2.5, (2, 3)) for _ in range(3))
POSITIVE, SMALL = _RNG.uniform(0.2, 3, (2, 3)), _RNG.uniform(-0.9, 0.9, (2, 3))
ROW, NUMBER = _RNG.uniform(-2, 2, (1, 3)), np.asarray(0.75)
SQUARE = _RNG.uniform(-1, 1, (3, 3)) + 2 * np.eye(3)
HALVES = np.array([[0.5, -0.4, 1.7], [2.5, -1.2, -0.6]])
MANY = 40_000
TEN = np.arange(10.0)


def _assigned(x: Any) -> Any:
    """What was computed from a variable, after an array was assigned to it."""
    a = nnc.var_arr("a", shape=(2, 3), dtype="float64")
    y = a + 1.0
    nnc.assign(a, x)
    nnc.eval_arr([y])
    return nnc.unpack_arr(y)


def _moments(x: Any) -> list[Any]:
    return [nnc.mean(x), nnc.std(x)]


def _drawn(x: Any) -> Any:
    """Of 500 numbers drawn from x: whether they are all in x, and whether each of x is among them."""
    y = nnc.take(x, nnc.Generator(5).integers(0, len(TEN), (500,)), axis=0)
    return [nnc.isin(y, x), nnc.isin(x, y)]


def _clipped_by_norm(xp: Any, x: Any) -> Any:
    return x * xp.minimum(1.0, 1.5 / xp.linalg.norm(x))


def _set(x: Array, place: Any, value: Any) -> Array:
    y = x.copy()
    y[place] = value
    return y


def _lazily(x: Any) -> Any:
    return nnc.lazy_print(x, header=False, fmt="{:.1f}".format)


ONE_SEED = "the generator's seed decides; Owl's is global"
ONE_NAME = "the graph's symbols and a traced function are two ways to record; one of them is enough"
CREATION: dict[str, Row] = {
    "Noop": Row("positive", nnc.positive, lambda x: x, (X,)),
    "Var": Row("var_arr, assign, eval_arr, unpack_arr", _assigned, lambda x: x + 1, (X,), eager_only=ONE_NAME),
    "Const": Row("const_arr", lambda: nnc.const_arr(X), lambda: X, eager_only=ONE_NAME),
    "Empty": Row("empty", lambda: nnc.asarray(nnc.empty((2, 3)).shape), lambda: np.array([2, 3]),
                 note="only the shape is promised"),
    "Zeros": both("zeros", lambda xp: xp.zeros((2, 3))),
    "Ones": both("ones", lambda xp: xp.ones((2, 3))),
    "Create": both("full", lambda xp: xp.full((2, 3), 7.5)),
    "Sequential": both("arange, reshape", lambda xp: xp.reshape(1.0 + 0.5 * xp.arange(6.0), (2, 3))),
    "Uniform": Row("Generator.uniform", lambda: _moments(nnc.Generator(1).uniform((MANY,), 2.0, 5.0)),
                   lambda: [3.5, 3 / 12**0.5], near=0.02, note=ONE_SEED),
    "Gaussian": Row("Generator.normal", lambda: _moments(nnc.Generator(1).normal((MANY,), 1.0, 0.5)),
                    lambda: [1.0, 0.5], near=0.02, note=ONE_SEED),
    "Bernoulli": Row("Generator.bernoulli, astype",
                     lambda: _moments(nnc.astype(nnc.Generator(1).bernoulli(0.3, (MANY,)), nnc.float64)),
                     lambda: [0.3, 0.21**0.5], near=0.02, note="booleans here, 0.0 and 1.0 in Owl"),
    "Init": Row("fromfunction, host_map", lambda: [
                    nnc.fromfunction(lambda i, j: (i * 3 + j) ** 2, (2, 3)),
                    nnc.reshape(nnc.host_map(lambda i: i**2, nnc.arange(6)), (2, 3))],
                lambda: [np.arange(6).reshape(2, 3) ** 2] * 2, note="of tensors on the device, of numbers on the host"),
    "Copy": Row("Tensor.copy", lambda x: x.copy(), lambda x: x, (X,)),
    "Reset": both("zeros_like", lambda xp, x: xp.zeros_like(x), X),
    "OfArray": Row("stack, reshape", lambda *xs: nnc.reshape(nnc.stack(xs), (1, 2)), lambda *xs: np.array([xs]),
                   (NUMBER, NUMBER + 1)),
}  # fmt: skip

INDEXING: dict[str, Row] = {
    "Get": both("Tensor.__getitem__", lambda xp, x: x[1, 2], X),
    "Set": Row("Tensor.at", lambda x: x.at[1, 2].set(7.0), lambda x: _set(x, (1, 2), 7.0), (X,)),
    "GetSlice": both("Tensor.__getitem__", lambda xp, x: x[-1::-1, 0:3:2], X, note="Owl's ends are included"),
    "SetSlice": Row("Tensor.at", lambda x, y: x.at[:, 1:].set(y), lambda x, y: _set(x, np.s_[:, 1:], y), (X, Y[:, 1:])),
    "GetFancy": both("Tensor.__getitem__", lambda xp, x: x[[1, 0, 1], 1:], X),
    "SetFancy": Row("Tensor.at", lambda x, y: x.at[[1, 0], 1:].set(y),
                    lambda x, y: _set(x, np.s_[[1, 0], 1:], y), (X, Y[:, 1:])),
    "Draw": Row("Generator.integers, take", _drawn, lambda x: [np.full(500, True), np.full(10, True)], (TEN,)),
    "RowNum": both("Tensor.shape", lambda xp, x: xp.asarray(x.shape[0]), X),
    "ColNum": both("Tensor.shape", lambda xp, x: xp.asarray(x.shape[1]), X),
    "Row": both("Tensor.__getitem__", lambda xp, x: x[1:2], X, note="Owl keeps the axis"),
    "Rows": both("take", lambda xp, x: xp.take(x, xp.asarray([1, 0]), axis=0), X),
    "CopyRowTo": Row("Tensor.at", lambda x, v: x.at[1].set(v), lambda x, v: _set(x, 1, v), (X, ROW[0])),
    "CopyColTo": Row("Tensor.at", lambda x, v: x.at[:, 2].set(v), lambda x, v: _set(x, np.s_[:, 2], v), (X, Y[:, 0])),
    "ToRows": Row("unstack", nnc.unstack, list, (X,)),
    "OfRows": both("concat", lambda xp, x, y: xp.concat([x, y, x]), ROW, ROW + 1),
    "OneHot": Row("one_hot", lambda i: nnc.one_hot(i, 4), lambda i: np.eye(4)[i], (np.array([[2, 0, 3]]),)),
}  # fmt: skip

MOVEMENT: dict[str, Row] = {
    "Reshape": both("reshape", lambda xp, x: xp.reshape(x, (3, -1)), X),
    "Reverse": both("flip", lambda xp, x: xp.flip(x), X, note="along all axes"),
    "Tile": both("tile", lambda xp, x: xp.tile(x, (2, 1, 2)), X),
    "Repeat": both("repeat", lambda xp, x: xp.repeat(xp.repeat(x, 2, axis=0), 3, axis=1), X, note="one axis at a time"),
    "Pad": both("pad", lambda xp, x: xp.pad(x, ((1, 2), (0, 1)), constant_values=1.5), X),
    "Concatenate": both("concat", lambda xp, x, y: xp.concat([x, y], axis=1), X, Y),
    "Stack": both("stack", lambda xp, x, y: xp.stack([x, y], axis=1), X, Y),
    "Split": both("split", lambda xp, x: xp.split(x, [2], axis=1), X, note="at places, where Owl gives lengths"),
    "Transpose": both("permute_dims", lambda xp, x: xp.permute_dims(x[None], (2, 0, 1)), X),
}

HOST: dict[str, Row] = {
    "Map": Row("host_map", lambda x: nnc.host_map(lambda v: v**2 + 1, x), lambda x: x**2 + 1, (X,),
               note="on the device: map, vmap"),
    "Fold": Row("host_fold", lambda x: nnc.host_fold(lambda a, v: 2 * a + v, 1.0, x, axis=0),
                lambda x: 4 + 2 * x[:1] + x[1:], (X,), note="on the device: scan"),
    "Scan": Row("host_scan", lambda x: nnc.host_scan(lambda a, v: a * v, x, axis=1), lambda x: np.cumprod(x, 1), (X,),
                note="on the device: scan"),
    "Delay": Row("delay", lambda x: nnc.delay(np.sort, x), np.sort, (X,), note="on the device: deferred, jit"),
    "DelayArray": Row("delay_array", lambda x, y: nnc.delay_array((3, 3), lambda xs: xs[0].T @ xs[1], [x, y]),
                      lambda x, y: x.T @ y, (X, Y), note="on the device: deferred, jit"),
    "LazyPrint": Row("lazy_print", _lazily, lambda x: x, (X,)),
}  # fmt: skip

REDUCTIONS: dict[str, Row] = {
    **{f"{f.capitalize()}{dash}": both(f, lambda xp, x, f=f, how=how: getattr(xp, f)(x, **how), X, note=note)
       for f in ("min", "max", "sum")
       for dash, how, note in (("", {"axis": 1, "keepdims": True}, ""), ("'", {}, "over all axes"))},
    "SumReduce": both("sum", lambda xp, x: xp.sum(x[None], axis=(0, 2), keepdims=True), X, note="several axes"),
    "LogSumExp'": Row("logsumexp", nnc.logsumexp, special.logsumexp, (X,), note="over all axes"),
    "LogSumExp": Row("logsumexp", lambda x: nnc.logsumexp(x, axis=0, keepdims=True),
                     lambda x: special.logsumexp(x, axis=0, keepdims=True), (X,)),
    "L1norm'": Row("linalg.vector_norm", lambda x: nnc.linalg.vector_norm(x, ord=1), lambda x: np.abs(x).sum(), (X,)),
    "L2norm'": Row("linalg.vector_norm", nnc.linalg.vector_norm, np.linalg.norm, (X,)),
    "L2NormSqr'": both("sum, square", lambda xp, x: xp.sum(xp.square(x)), X),
    "Trace": both("trace", lambda xp, x: xp.trace(x), SQUARE),
}  # fmt: skip

UNARY: dict[str, tuple[str, Callable[..., Any], Array, str]] = {
    **{name: (name.lower(), getattr(np, name.lower()), X, "") for name in (
        "Abs", "Floor", "Ceil", "Exp", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh", "Atan", "Asinh")},
    **{name: (name.lower(), getattr(np, name.lower()), POSITIVE, "") for name in ("Sqrt", "Log", "Log2", "Log10")},
    **{name: (name.lower(), getattr(np, name.lower()), SMALL, "") for name in ("Asin", "Acos", "Atanh")},
    "Acosh": ("acosh", np.acosh, 1 + POSITIVE, ""),
    "Round": ("round", np.round, HALVES, "halves to even; Owl rounds them away from zero"),
    "Neg": ("negative", np.negative, X, ""), "Sqr": ("square", np.square, X, ""),
    "Signum": ("sign", np.sign, X, ""), "Relu": ("relu", lambda x: np.maximum(x, 0), X, ""),
    "Sigmoid": ("sigmoid", special.expit, X, ""), "Dawsn": ("dawsn", special.dawsn, X, ""),
}  # fmt: skip
"""Our name, NumPy's or SciPy's, the operand, what differs."""


def _of_a_number(name: str) -> Row:
    ours, f, x, note = UNARY[name]
    return Row(ours, getattr(nnc, ours), f, (x[0, 0],), f"folds into {name}" + f"; {note}" * bool(note))


ELEMENTWISE: dict[str, Row] = {
    **{name: Row(ours, getattr(nnc, ours), f, (x,), note) for name, (ours, f, x, note) in UNARY.items()},
    **{f"Scalar_{name}": _of_a_number(name) for name in UNARY},
    "ClipByValue": both("clip", lambda xp, x: xp.clip(x, -1.0, 0.5), X),
    "ClipByL2norm": both("minimum, linalg.norm", _clipped_by_norm, X),
    "FMA": both("Tensor.__add__, Tensor.__mul__", lambda xp, a, b, c: a * b + c, X, Y, Z,
                note="one kernel, two roundings"),
    "Fused_Adagrad": both("divide, sqrt", lambda xp, x: 0.1 / xp.sqrt(x + 1e-8), POSITIVE,
                          note="any elementwise expression is one kernel"),
}

_FOLDED = "folds into {}: a Python number stands on either side"
ARITHMETIC = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Pow": "pow", "Atan2": "atan2"}


def _arithmetic() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for name, ours in ARITHMETIC.items():
        of = lambda xp, a, b, f=ours: getattr(xp, f)(a, b)  # noqa: E731
        x, y = (POSITIVE, SMALL[:1]) if ours == "pow" else (X, POSITIVE[:1])
        rows[name] = both(ours, of, x, y)
        rows[f"{name}Scalar"] = both(ours, lambda xp, a, of=of: of(xp, a, 1.5), x, note=_FOLDED.format(name))
        rows[f"Scalar{name}"] = both(ours, lambda xp, a, of=of: of(xp, 1.5, a), x, note=_FOLDED.format(name))
        rows[f"Scalar_{name}"] = both(ours, of, x[0, 0], y[0, 0], note=f"folds into {name}")
    return rows


COMPARISONS = ("equal", "not_equal", "less", "greater", "less_equal", "greater_equal")


def _comparisons() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for ours in COMPARISONS:
        name = "Elt" + "".join(part.capitalize() for part in ours.split("_"))
        of = lambda xp, a, b, f=ours: getattr(xp, f)(a, b)  # noqa: E731
        rows[name] = both(ours, of, np.floor(X), np.floor(ROW), note="booleans here, 0.0 and 1.0 in Owl")
        rows[f"{name}Scalar"] = both(ours, lambda xp, a, of=of: of(xp, a, 1.0), np.floor(X), note=_FOLDED.format(name))
    return rows


BINARY: dict[str, Row] = {
    **_arithmetic(), **_comparisons(),
    "Hypot": both("hypot", lambda xp, x, y: xp.hypot(x, y), X, ROW),
    "Min2": both("minimum", lambda xp, x, y: xp.minimum(x, y), X, ROW),
    "Max2": both("maximum", lambda xp, x, y: xp.maximum(x, y), X, ROW),
    "Dot": both("matmul", lambda xp, a, b, c: 0.5 * (a.T @ b) + 2.0 * c, X, Y, SQUARE,
                note="transposes are folded into the product"),
    "Inv": both("linalg.inv", lambda xp, x: xp.linalg.inv(x), SQUARE),
}  # fmt: skip

OWL: dict[str, Row] = {**CREATION, **INDEXING, **MOVEMENT, **HOST, **REDUCTIONS, **ELEMENTWISE, **BINARY, **WINDOWS}
