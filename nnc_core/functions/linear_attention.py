"""Linear attention: a matrix of keys times values in place of softmax, which decays and is corrected step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

from nnc_core.base.dtype import is_float
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.control.constructs import scan
from nnc_core.functions.attention_masks import scale_of
from nnc_core.functions.constants import beside
from nnc_core.functions.floats import one_dtype
from nnc_core.operator.wide import narrowed, widened_operand
from nnc_core.type import Dims
from nnc_core.values.arguments import ArrayLike, as_value, names_itself, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["linear_attention"]


class _Rows(NamedTuple):
    """Rows that each step reads, steps first: queries (length, batch, key heads, group, features), keys as columns
    (..., features, 1), values as rows (..., 1, features), and perhaps decay and rate alike."""

    query: Value
    key: Value
    value: Value
    decay: Value | None
    beta: Value | None


@names_itself
def linear_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, state: ArrayLike | None = None, /, *,
                     decay: ArrayLike | None = None, beta: ArrayLike | None = None,
                     scale: float | None = None) -> tuple[Tensor, Tensor]:
    """y[t] = scale * query[t] @ S[t], with S[t] = S[t - 1] + outer(key[t], value[t]); gives y and the last S.

    Query (batch, heads, length, features), key and value (batch, key heads, length, features), of which each head
    serves heads / key heads neighbouring ones of the queries; the state S (batch, key heads, features of keys, features
    of values), zeros if not given.  With `decay`, broadcast to keys, rows of S are first multiplied by exp(decay[t])
    (gated linear attention).  With `beta`, broadcast to (batch, key heads, length, 1), what is written is
    beta[t] * (value[t] - key[t] @ S) (the delta rule).  `scale` is 1 / sqrt(features) where it is not said.
    """
    given = {"query": query, "key": key, "value": value}
    given |= {name: x for name, x in (("state", state), ("decay", decay), ("beta", beta)) if x is not None}
    stack = stack_of(tuple(given.values()))
    there = {name: as_value(x, stack) for name, x in given.items()}
    for name, x in there.items():
        if x.ndim != 4:
            raise ShapeError(f"the {name} is {x.spec}, expected four dimensions")
        if not is_float(x.dtype):
            raise DTypeError(f"the {name} is {x.dtype}, not of floating-point numbers", hint="cast with astype")
    dtype, kept = there["query"].dtype, there.get("state", there["query"]).dtype
    wide = dict(zip(there, one_dtype([widened_operand(F, x) for x in there.values()]), strict=True))
    rows, first = _rows(wide, scale), _state(wide)
    y, last = _gone_through(rows, first)
    q = wide["query"]
    y = F.reshape(F.permute(y, axes=(1, 2, 3, 0, 4)), shape=(*q.shape[:3], y.shape[4]))
    return Tensor(narrowed(F, y, dtype)), Tensor(narrowed(F, last, kept))


def _rows(x: dict[str, Value], scale: float | None) -> _Rows:
    q, k, v = x["query"], x["key"], x["value"]
    batch, heads, length, features = q.shape
    own: Any = k.shape[1]
    if k.shape != (batch, own, length, features) or v.shape[:3] != k.shape[:3] or (heads % own if own else heads):
        raise ShapeError(f"query {q.spec}, key {k.spec} and value {v.spec} do not go together")
    group = heads // own if own else 1
    grouped = F.reshape(F.multiply(q, scale_of(q, scale)), shape=(batch, own, group, length, features))
    return _Rows(F.permute(grouped, axes=(3, 0, 1, 2, 4)), _steps(k, k.shape, column=True), _steps(v, v.shape),
                 _steps(F.exp(x["decay"]), k.shape, column=True) if "decay" in x else None,
                 _steps(x["beta"], (*k.shape[:3], 1)) if "beta" in x else None)


def _steps(v: Value, shape: Dims, column: bool = False) -> Value:
    """(length, batch, heads, 1, features), or (..., features, 1)."""
    v = v if v.shape == shape else F.broadcast_to(v, shape=shape)
    first = F.permute(v, axes=(2, 0, 1, 3))
    lead, last = first.shape[:-1], first.shape[-1]
    return F.reshape(first, shape=(*lead, last, 1) if column else (*lead, 1, last))


def _state(x: dict[str, Value]) -> Value:
    k, v = x["key"], x["value"]
    shape = (*k.shape[:2], k.shape[3], v.shape[3])
    if "state" not in x:
        with beside(k):
            return F.full(shape=shape, value=0, dtype=k.dtype)
    if x["state"].shape != shape:
        raise ShapeError(f"the state is {x['state'].spec}, expected shape {shape}")
    return x["state"]


def _gone_through(rows: _Rows, first: Value) -> tuple[Value, Value]:
    """Results of the steps, and the last state."""
    names = [name for name, row in rows._asdict().items() if row is not None]

    def step(carry: Tensor, given: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        s, now = as_value(carry), {name: as_value(t) for name, t in zip(names, given, strict=True)}
        s = F.multiply(s, now["decay"]) if "decay" in now else s
        v = now["value"]
        if "beta" in now:
            read = F.matmul(now["key"], s, transpose_a=True)
            v = F.multiply(now["beta"], F.subtract(v, read))
        s = F.add(s, F.multiply(now["key"], v))
        return Tensor(s), Tensor(F.matmul(now["query"], s))

    xs = tuple([Tensor(row) for row in rows if row is not None])
    last, ys = scan(step, Tensor(first), xs)
    return as_value(ys), as_value(last)
