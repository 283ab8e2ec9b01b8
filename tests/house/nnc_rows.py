"""A row for each of NNC's commands: what it is here, and its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from tests.house.rows import Array, Code, Row, hosts

NO_PATTERN = "NNC has the name, but its command accepts no inputs: piecewise constant, or a step of a minimiser"
NO_INPUT = "the command has no input that its result depends on"
STEP = 1e-6


class Backward(NamedTuple):
    """The gradient of a forward command by some of its inputs."""

    wrt: tuple[int, ...] = ()
    closed: Code | None = None
    """(cotangent of the first result, *inputs) -> the gradients; without it they are difference quotients."""
    why_not: str = ""
    near: float = 1e-6
    forward: Row | None = None
    """What the command is, if it is no gradient."""


class Command(NamedTuple):
    forward: Row
    backward: Backward


def command(ours: str, code: Code, *inputs: Array, note: str = "") -> Command:
    """Code that is the same for tensors and arrays; the gradient is by all inputs."""
    return Command(Row(ours, code, code, inputs, note), Backward(tuple(range(len(inputs)))))


def drawn(x: Any) -> list[Any]:
    return [nnc.mean(x), nnc.std(x)]


def last_axis_pairs(xp: Any, a: Any, b: Any) -> Any:
    """Products of complex numbers whose parts alternate along the last axis."""

    def numbers(x: Any) -> Any:
        real, imag = x[..., ::2], x[..., 1::2]
        return nnc.complex(real, imag) if xp is nnc else real + 1j * imag

    product = numbers(a) * numbers(b)
    parts = xp.stack([xp.real(product), xp.imag(product)], axis=-1)
    return xp.reshape(parts, (*product.shape[:-1], -1))


# ---- gradients
def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def cotangents(row: Row) -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.uniform(-1, 1, y.shape) for y in hosts(row.wanted(*row.inputs))]


def pulled(c: Command, *given: Any) -> Any:
    """(cotangents of the results, inputs) -> gradients: of the sum of the results times their cotangents."""
    row, wrt = c.forward, c.backward.wrt
    gs, xs = given[: -len(row.inputs)], given[-len(row.inputs) :]

    def scalar(*xs: Any) -> Any:
        ys = listed(row.run(*xs))
        parts = [nnc.sum(nnc.astype(y.to(g.device), g.dtype) * g) for y, g in zip(ys, gs, strict=True)]
        return sum(parts[1:], parts[0])

    return nnc.grad(scalar, wrt)(*xs)


def wanted_gradients(c: Command) -> list[Array]:
    row, gs = c.forward, cotangents(c.forward)
    if c.backward.closed is not None:
        return hosts(c.backward.closed(gs[0], *row.inputs))
    return [_differences(row, gs, place) for place in c.backward.wrt]


def _differences(row: Row, gs: list[Array], place: int) -> Array:
    def value(x: Array) -> float:
        given = [*row.inputs[:place], x, *row.inputs[place + 1 :]]
        return float(sum(np.sum(y * g) for y, g in zip(hosts(row.wanted(*given)), gs, strict=True)))

    x = row.inputs[place]
    units = np.eye(x.size).reshape(-1, *x.shape) * STEP
    return np.array([(value(x + u) - value(x - u)) / (2 * STEP) for u in units]).reshape(x.shape)
