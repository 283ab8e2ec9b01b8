"""Cases of activations, normalisations, softmax with masks, attention and recurrent networks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, DType
from nnc_plugins.conformance.case import (
    LARGE,
    Array,
    Case,
    Maker,
    arrays,
    draw,
    extreme_values,
    fixed,
    specials,
    subnormals,
)

NAN, INF = np.nan, np.inf
WIDE = (dt.float32, dt.float64)


def _subnormal_values(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return (subnormals(dtype),)


def _unary(**attributes: Hashable) -> list[Case]:
    said = "".join(f", {k} {v}" for k, v in attributes.items())

    def case(label: str, make: Maker, smooth: bool = False) -> Case:
        return Case(label + said, make, FLOATS, attributes, smooth=smooth)

    return [
        case("packed", arrays((3, 4)), smooth=True), case("scalar", arrays(()), smooth=True),
        case("empty", arrays((0, 3))), case("large", arrays(LARGE, low=-6, high=6)),
        case("far from zero", arrays((40,), low=-100, high=100)), case("extremes", extreme_values),
        case("subnormal", _subnormal_values),
    ]  # fmt: skip


# ---- softmax with a mask
def _with_mask(shape: tuple[int, ...], mask_shape: tuple[int, ...]) -> Maker:
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return draw(rng, dtype, shape), rng.random(mask_shape) < 0.6

    return make


def _masked_softmaxes() -> list[Case]:
    def along(shape: tuple[int, ...], mask: tuple[int, ...], axis: int) -> Case:
        return Case(f"{shape}, mask {mask} along {axis}", _with_mask(shape, mask), FLOATS, {"axis": axis}, smooth=True)

    def holed(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        x = np.array([[0, 1, NAN], [-INF, -INF, 2], [1, 2, 3], [INF, 0, 1]]).astype(dtype)
        return x, np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1]], np.bool_)

    return [
        along((3, 4), (3, 4), 1), along((3, 4), (4,), 0), along((2, 3, 4), (2, 1, 4), 2), along((5,), (5,), 0),
        along((0, 3), (0, 3), 1), along((3, 0), (3, 0), 1), Case("rows of nothing", holed, FLOATS, {"axis": 1}),
        Case("large", _with_mask(LARGE, LARGE), FLOATS, {"axis": 1}),
    ]  # fmt: skip


# ---- normalisations
def _normalised() -> list[Case]:
    def over(shape: tuple[int, ...], axis: tuple[int, ...], epsilon: float = 1e-5) -> Case:
        return Case(f"{shape} over {axis}, epsilon {epsilon}", arrays(shape), FLOATS,
                    {"axis": axis, "epsilon": epsilon}, smooth=True)

    rows = {"axis": (1,), "epsilon": 1e-3}
    return [
        over((3, 4), (1,)), over((3, 4), (0,)), over((2, 3, 4), (1, 2)), over((2, 3, 4), (0, 2), 0.0),
        over((2, 2, 3, 2), (0, 2, 3)), over((5,), (0,), 1e-3), over((4, 1), (1,), 0.1), over((3, 0), (0,)),
        Case("nothing to fold", arrays((3, 0)), FLOATS, rows),
        Case("equal", fixed([[2, 2, 2], [0, 0, 0]]), FLOATS, rows),
        Case("specials", fixed([[1.0, NAN, 2.0], [INF, 1.0, 0.0]]), FLOATS, rows),
        Case("large numbers", arrays((4, 300), low=200, high=240), FLOATS, rows),
        # So far that squares less the square of the mean go wrong, and not so far that one rounding of the mean does.
        Case("far from zero", arrays((4, 50), low=200, high=210), WIDE, rows),
        Case("large", arrays(LARGE), FLOATS, rows),
    ]  # fmt: skip


def _batch_norms() -> list[Case]:
    def of(shape: tuple[int, ...], axis: int, stored: DType | None = None) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            kept, n = stored or dtype, (shape[axis],)
            mean, scale, bias = (draw(rng, kept, n) for _ in range(3))
            return draw(rng, dtype, shape), mean, draw(rng, kept, n, 0.5, 2), scale, bias

        dtypes = FLOATS if stored is None else (dt.float16, dt.bfloat16)
        return Case(f"{shape} channels {axis}, moments {stored}", make, dtypes, {"axis": axis, "epsilon": 1e-5},
                    smooth=shape != LARGE)

    def spoilt(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return *specials((4, 5))(rng, dtype), *arrays((5,), (5,), (5,), (5,), low=0.5)(rng, dtype)

    return [of((3, 4), 1), of((2, 3, 2, 4), 3), of((2, 3, 2, 4), 1), of((0, 3), 1), of((3, 0), 1), of((5,), 0),
            of(LARGE, 1), of((3, 4), 1, dt.float32),
            Case("specials", spoilt, FLOATS, {"axis": 1, "epsilon": 1e-5})]  # fmt: skip


# ---- attention
MASKS: dict[str, tuple[int, ...]] = {"all": (), "keys": (6,), "queries and keys": (4, 6), "examples": (2, 1, 1, 6)}


def _attentions(several: bool) -> list[Case]:
    """(2, heads, 4, 3) queries, (2, key heads, 6, 3) keys; values have 5 features."""

    def of(label: str, heads: int, key_heads: int, mask: Maker | None = None, causal: bool = False, offset: int = 0,
           dtypes: tuple[DType, ...] = FLOATS) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            query, key, value = (draw(rng, dtype, (2, *shape), -2, 2)
                                 for shape in ((heads, 4, 3), (key_heads, 6, 3), (key_heads, 6, 5)))
            given = () if mask is None else mask(rng, dtype)
            return (query, key, value, *given) if several else (query, key, *given)

        return Case(label, make, dtypes, {"scale": 0.6, "causal": causal, "offset": offset}, smooth=True)

    def large(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return arrays(*[(2, 8, n, 64) for n in ((65, 67, 67) if several else (65, 67))], low=-1, high=1)(rng, dtype)

    def spoilt(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return *specials((2, 2, 4, 3))(rng, dtype), *arrays(*[(2, 2, 6, 3)] * (1 + several), low=0.5)(rng, dtype)

    def boolean(shape: tuple[int, ...]) -> Maker:
        return lambda rng, dtype: (rng.random(shape) < 0.7,)

    def added(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return (draw(rng, dtype, (3, 4, 6)),)

    def nothing(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        mask = np.ones((4, 6), np.bool_)
        mask[1] = False
        return (mask,)

    return [
        of("plain", 3, 3), of("causal", 3, 3, causal=True), of("causal, later", 2, 2, causal=True, offset=2),
        of("causal, before the first key", 2, 2, causal=True, offset=-2), of("shared keys", 6, 2),
        of("shared keys, causal", 4, 1, causal=True), of("added", 3, 3, added), of("nothing to see", 2, 2, nothing),
        *[of(f"mask of {name}", 2, 2, boolean(shape)) for name, shape in MASKS.items()],
        of("mask and causal", 2, 2, boolean((4, 6)), causal=True), of("no heads", 0, 0),
        Case("large", large, FLOATS, {"scale": 0.125, "causal": True, "offset": 2}),
        Case("specials", spoilt, FLOATS, {"scale": 0.6, "causal": False, "offset": 0}),
    ]  # fmt: skip


def _attention_gradients(from_result: bool = False) -> list[Case]:
    """The cases of attention; cotangents, sums and shifts, or results, need not come from one."""

    def of(case: Case) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            query, key, value, *mask = case.make(rng, dtype)
            rows, wide = query.shape[:-1], dt.accumulator(dtype)
            out = (*rows, value.shape[-1])
            last = draw(rng, dtype, out, -1, 1) if from_result else draw(rng, wide, rows, -1, 1)
            return (query, key, value, draw(rng, dtype, out, -1, 1), draw(rng, wide, rows, 0, 2), last, *mask)

        return replace(case, make=make)

    return list(map(of, _attentions(several=True)))


# ---- recurrent networks
def _recurrent(name: str, gates: int, **attributes: Hashable) -> list[Case]:
    """Sequences of 4 features and states of 3."""
    states = 2 if name == "lstm" else 1
    biases = 2 if name == "gru" else 1

    def of(label: str, length: int = 3, batch: int = 2, mask: Array | None = None, projected: bool = False,
           reverse: bool = False, dtypes: tuple[DType, ...] = FLOATS, smooth: bool = True,
           special: bool = False) -> Case:
        size = 2 if projected else 3
        shapes = [(length, batch, 4), (batch, size), *[(batch, 3)] * (states - 1), (4, 3 * gates), (size, 3 * gates),
                  *[(3 * gates,)] * biases, *[(3, size)] * projected]

        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            given = [draw(rng, dtype, shape, -1, 1) for shape in shapes]
            if special:
                given[0][-1, 0, :2] = np.array([np.inf, np.nan], dtype)
            return (*given, *([] if mask is None else [mask]))

        named = {**attributes, "reverse": reverse, **({"projected": projected} if name == "lstm" else {})}
        said = "".join(f", {k} {v}" for k, v in attributes.items())
        return Case(label + said, make, dtypes, named, smooth=smooth)

    lengths = np.arange(3)[:, None] < np.array([3, 1])
    cases = [
        of("forwards"), of("backwards", reverse=True), of("of several lengths", mask=lengths),
        of("backwards, of several lengths", mask=lengths, reverse=True), of("of length 1", length=1, batch=1),
        of("of length 0", length=0, dtypes=WIDE, smooth=False), of("long", length=20, batch=5, smooth=False),
        of("an empty batch", batch=0, dtypes=WIDE, smooth=False),
        of("large", length=2, batch=8209, smooth=False), of("specials", smooth=False, special=True),
    ]  # fmt: skip
    if name == "lstm":
        cases += [of("projected", projected=True), of("projected, masked", projected=True, mask=lengths)]
    return cases


CASES: dict[str, list[Case]] = {
    **{name: _unary() for name in ("silu", "mish", "softplus", "softsign")},
    "gelu": [*_unary(approximate="none"), *_unary(approximate="tanh")],
    "elu": [*_unary(alpha=1.0), *_unary(alpha=0.3)],
    "leaky_relu": [*_unary(slope=0.01), *_unary(slope=-0.2), *_unary(slope=0.0)],
    "masked_softmax": _masked_softmaxes(),
    "standardise": _normalised(), "rms_normalise": _normalised(), "batch_norm": _batch_norms(),
    "attention_weights": _attentions(several=False), "scaled_dot_product_attention": _attentions(several=True),
    "attention_gradients": _attention_gradients(),
    "attention_gradients_from_result": _attention_gradients(from_result=True),
    "rnn": [*_recurrent("rnn", 1, nonlinearity="tanh"), *_recurrent("rnn", 1, nonlinearity="relu")],
    "gru": [*_recurrent("gru", 3, reset_after=True), *_recurrent("gru", 3, reset_after=False)],
    "lstm": _recurrent("lstm", 4),
}  # fmt: skip
