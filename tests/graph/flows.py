"""Programs with loops, branches and calls, twice: as our control flow, and unrolled by Python, ignorant of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from nnc_core.control.body import BodyCaptures, TracedBody
from nnc_core.values.dispatch import F

Scalar = Callable[..., nnc.Tensor]


class Recorded:
    """Control flow as nodes with bodies (and in eager mode whatever the library makes of it)."""

    while_loop = staticmethod(nnc.while_loop)
    scan = staticmethod(nnc.scan)
    case_of = staticmethod(nnc.case_of)
    cond = staticmethod(nnc.cond)

    @staticmethod
    def call(f: Callable[..., nnc.Tensor], *args: nnc.Tensor) -> nnc.Tensor:
        """f(*args) as one step that holds f's body."""
        values = [a._value for a in args]
        stack = values[0].stack
        with nnc.use_device(stack):
            traced = TracedBody(f, "f", values, [v.spec for v in values], lambda ts: tuple(ts))
            ys = [traced.result._value]
            around = BodyCaptures([traced], [ys])
            body = traced.body(stack, ys, [*[[s] for s in traced.symbols], *around.inputs(0)])
            return nnc.Tensor(F.pick(F.call([*values, *around.operands()], body=body, name="f"), index=0))


class Unrolled:
    """The same by loops and branches of Python."""

    @staticmethod
    def while_loop(cond: Any, body: Any, carried: Any) -> tuple[Any, ...]:
        values = tuple(carried)
        while bool(cond(*values)):
            values = tuple(body(*values))
        return values

    @staticmethod
    def scan(f: Any, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
        leaves = [] if xs is None else list(xs.values()) if isinstance(xs, dict) else list(xs) if isinstance(
            xs, tuple) else [xs]
        count = leaves[0].shape[0] if leaves else length
        assert count is not None
        carry, ys = init, [None] * count
        for i in range(count)[::-1] if reverse else range(count):
            rows = [x[i] for x in leaves]
            row = None if xs is None else dict(zip(xs, rows, strict=True)) if isinstance(xs, dict) else tuple(
                rows) if isinstance(xs, tuple) else rows[0]
            carry, ys[i] = f(carry, row)
        return carry, None if not ys or ys[0] is None else nnc.stack(ys)  # type: ignore[arg-type]

    @staticmethod
    def case_of(index: Any, branches: Sequence[Any], operands: Any = (), replacement: Any = None) -> tuple[Any, ...]:
        number = int(index)
        return tuple(branches[number](*operands)) if 0 <= number < len(branches) else tuple(replacement)

    @staticmethod
    def cond(pred: Any, true_fn: Any, false_fn: Any, *operands: Any) -> Any:
        return true_fn(*operands) if bool(pred) else false_fn(*operands)

    @staticmethod
    def call(f: Callable[..., nnc.Tensor], *args: nnc.Tensor) -> nnc.Tensor:
        return f(*args)


class Program(NamedTuple):
    """A scalar function of float arrays of these shapes: f(flow, *args)."""

    f: Callable[..., nnc.Tensor]
    shapes: tuple[tuple[int, ...], ...]


def repeated(flow: Any, x: Any, w: Any) -> Any:
    """A counted while."""
    _, y = flow.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, nnc.tanh(y @ w) + 0.5 * y), (nnc.asarray(0), x))
    return nnc.sum(y * y)


def early(flow: Any, x: Any) -> Any:
    """How often it goes round depends on the data."""
    y, n = flow.while_loop(lambda y, n: nnc.sum(y * y) < 40.0, lambda y, n: (y * 1.5 + nnc.sin(y), n + 1),
                           (x, nnc.asarray(0)))
    return nnc.sum(nnc.tanh(y)) * nnc.sum(y) + n.astype(y.dtype) * nnc.sum(x)


def never(flow: Any, x: Any, w: Any) -> Any:
    """Not even one round: the values go through, and the weight has no influence."""
    y, _ = flow.while_loop(lambda y, i: i < 0, lambda y, i: (y * w, i + 1), (x * x, nnc.asarray(3)))
    return nnc.sum(y)


def nested(flow: Any, x: Any, w: Any) -> Any:
    """The inner loop goes round more often each time."""

    def outer(i: Any, y: Any) -> Any:
        _, z = flow.while_loop(lambda j, z: j < i + 1, lambda j, z: (j + 1, nnc.sin(z * w) + y), (nnc.asarray(0), y))
        return i + 1, z

    return nnc.sum(flow.while_loop(lambda i, y: i < 3, outer, (nnc.asarray(0), x))[1] ** 2)


def rolled(flow: Any, x: Any, w: Any) -> Any:
    """A scan: what it carries and what it stacks both count."""
    last, ys = flow.scan(lambda c, row: (nnc.tanh(c * w) + row, c * row), w * 0.5, x)
    return nnc.sum(last * last) + nnc.sum(ys * nnc.sin(ys))


def rolled_back(flow: Any, x: Any, w: Any) -> Any:
    last, ys = flow.scan(lambda c, row: (nnc.tanh(c * w) + row, c * row), w * 0.5, x, reverse=True)
    return nnc.sum(last * last) + nnc.sum(ys * ys * x)


def trees(flow: Any, x: Any, u: Any, w: Any) -> Any:
    """Dictionaries carried and scanned; an integer and a boolean go along."""

    def step(c: Any, row: Any) -> Any:
        a, b = c["a"], c["b"]
        new = nnc.where(c["odd"], nnc.sin(a) * row["u"], a + row["x"] * b)
        return {"a": new, "b": b * w + new, "n": c["n"] + 1, "odd": ~c["odd"]}, new * c["n"].astype(new.dtype)

    start = {"a": w, "b": w * w, "n": nnc.asarray(1), "odd": nnc.asarray(False)}
    last, ys = flow.scan(step, start, {"u": u, "x": x})
    return nnc.sum(last["a"] * last["b"]) + nnc.sum(ys * ys)


def counted(flow: Any, w: Any) -> Any:
    """A scan over nothing but a length."""
    last, ys = flow.scan(lambda c, _: (nnc.sin(c) * w, c), w, None, length=3)
    return nnc.sum(last) + nnc.sum(ys * ys)


def chosen(flow: Any, x: Any, w: Any) -> Any:
    """Branches of unequal work, taken by the sign of a sum; the last is never taken."""
    number = (nnc.sum(x) > 0).astype(nnc.int64)
    y, z = flow.case_of(number, [lambda x, w: (x * w * w, nnc.exp(w)), lambda x, w: (nnc.sin(x) * w, x * x * x),
                                 lambda x, w: (x, w)], (x, w), (x, x))
    return nnc.sum(y * y) + nnc.sum(z)


def otherwise(flow: Any, x: Any) -> Any:
    """No branch has the number: the replacement, which depends on x."""
    (y,) = flow.case_of(nnc.asarray(7), [lambda x: (nnc.exp(x),)], (x,), (x * x * x,))
    return nnc.sum(y)


def decided(flow: Any, x: Any, w: Any) -> Any:
    return nnc.sum(flow.cond(nnc.sum(x) > 100, lambda x: nnc.exp(x * w), lambda x: nnc.sin(x) * x * w, x))


def called(flow: Any, x: Any, w: Any) -> Any:
    """The same function called twice, once on its own result; it reads w from outside."""

    def f(a: Any, b: Any) -> Any:
        return nnc.tanh(a * b) * w + a

    return nnc.sum(flow.call(f, flow.call(f, x, w), x) ** 2)


def loop_of_branches(flow: Any, x: Any, w: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        (z,) = flow.case_of(i % 3, [lambda y: (nnc.sin(y) * w,), lambda y: (y * y + w,)], (y,), (y * 0.5,))
        return i + 1, z

    return nnc.sum(flow.while_loop(lambda i, y: i < 5, step, (nnc.asarray(0), x))[1] ** 2)


def branch_of_loops(flow: Any, x: Any, w: Any) -> Any:
    def loop(x: Any) -> Any:
        return flow.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, nnc.sin(y) * w), (nnc.asarray(0), x))[1]

    def scan(x: Any) -> Any:
        return flow.scan(lambda c, row: (c * row + w, None), x[0], x)[0] + x * 0

    return nnc.sum(flow.cond(nnc.sum(x) > 0, loop, scan, x) ** 2) + nnc.sum(flow.cond(nnc.sum(x) < 0, loop, scan, x))


def scan_of_while(flow: Any, x: Any, w: Any) -> Any:
    """In each step a loop whose end depends on the data."""

    def step(c: Any, row: Any) -> Any:
        y, k = flow.while_loop(lambda y, k: (nnc.sum(y) < 4.0) & (k < 5), lambda y, k: (y * 1.3 + w * w + 0.2, k + 1),
                               (row * row + 0.1 * c, nnc.asarray(0)))
        return nnc.sin(y) + c, y * k.astype(y.dtype)

    last, ys = flow.scan(step, w, x)
    return nnc.sum(last * last) + nnc.sum(nnc.sin(ys))


def call_of_scan(flow: Any, x: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        return flow.scan(lambda c, row: (nnc.sin(c * w) + row, c), w, x)[1]

    return nnc.sum(flow.call(f, flow.call(f, x)) ** 2)


def scan_of_call(flow: Any, x: Any, w: Any) -> Any:
    last, ys = flow.scan(lambda c, row: (flow.call(lambda a, b: nnc.sin(a * b) + w, c, row), c * c), w, x)
    return nnc.sum(last) + nnc.sum(ys)


def newton(flow: Any, a: Any) -> Any:
    """Cube roots by Newton's iteration, until nothing changes much: 1/3 a^(-2/3) is what differentiating must give."""
    y, _ = flow.while_loop(lambda y, d: nnc.max(nnc.abs(d)) > 1e-9,
                           lambda y, d: (y - (d := (y * y * y - a * a - 1.0) / (3.0 * y * y)), d),
                           (a * a + 1.0, a * 0 + 1.0))
    return nnc.sum(y)


def twice_used(flow: Any, x: Any) -> Any:
    """One loop whose results are all read, some several times, beside x itself."""
    a, b, _ = flow.while_loop(lambda a, b, i: i < 3, lambda a, b, i: (b, nnc.sin(a) * b, i + 1),
                              (x, x * x, nnc.asarray(0)))
    return nnc.sum(a * b) + nnc.sum(a) * nnc.sum(b * x) + nnc.sum(b)


def idle(flow: Any, x: Any, w: Any) -> Any:
    """w goes round and round, and what becomes of it is read by nobody."""
    y, _, _ = flow.while_loop(lambda y, v, i: i < 3, lambda y, v, i: (nnc.sin(y), v * y + w, i + 1),
                              (x, w, nnc.asarray(0)))
    return nnc.sum(y * y)


def recurrent(flow: Any, xs: Any, u: Any, v: Any, b: Any) -> Any:
    """A recurrent network over a sequence of small batches: captured weights, the loss of every state."""

    def step(h: Any, x: Any) -> Any:
        h = nnc.tanh(x @ u + h @ v + b)
        return h, nnc.mean(h * h)

    last, losses = flow.scan(step, nnc.zeros((2, 3), dtype=xs.dtype), xs)
    return nnc.sum(losses) + nnc.sum(last)


def stopped(flow: Any, xs: Any, w: Any) -> Any:
    """Rows are added up until a threshold is passed; what comes after changes nothing."""

    def step(c: Any, x: Any) -> Any:
        total, going = c
        new = flow.cond(going, lambda t: t + nnc.sin(x * w), lambda t: t, total)
        return (new, going & (nnc.sum(new) < 2.0)), new * x

    (total, _), ys = flow.scan(step, (w * 0.1, nnc.asarray(True)), nnc.abs(xs))
    return nnc.sum(total * total) + nnc.sum(ys)


def three_deep(flow: Any, x: Any, w: Any) -> Any:
    """A scan in a while loop in a scan; the innermost reads what all three carry."""

    def outer(c: Any, row: Any) -> Any:
        def middle(i: Any, y: Any) -> Any:
            z, zs = flow.scan(lambda d, r: (nnc.sin(d * r) + c * row, d), y, x)
            return i + 1, z * w + nnc.mean(zs)

        new = flow.while_loop(lambda i, y: i < 2, middle, (nnc.asarray(0), c))[1]
        return new, new * row

    last, ys = flow.scan(outer, w, x)
    return nnc.sum(last * last) + nnc.sum(ys)


PROGRAMS: dict[str, Program] = {
    f.__name__: Program(f, shapes) for f, *shapes in [
        (repeated, (2, 3), (3, 3)), (early, (3,)), (never, (3,), (3,)), (nested, (3,), (3,)), (rolled, (4, 3), (3,)),
        (rolled_back, (4, 3), (3,)), (trees, (4, 2), (4, 2), (2,)), (counted, (3,)), (chosen, (3,), (3,)),
        (otherwise, (3,)), (decided, (3,), (3,)), (called, (3,), (3,)), (loop_of_branches, (3,), (3,)),
        (branch_of_loops, (3, 3), (3,)), (scan_of_while, (3, 2), (2,)), (call_of_scan, (3, 2), (2,)),
        (scan_of_call, (3, 2), (2,)), (newton, (3,)), (twice_used, (3,)), (idle, (3,), (3,)),
        (recurrent, (4, 2, 3), (3, 3), (3, 3), (3,)), (stopped, (4, 2), (2,)), (three_deep, (2, 2), (2,)),
    ]
}  # fmt: skip


def arguments(program: Program, dtype: Any = np.float64, seed: int = 0) -> list[nnc.Tensor]:
    """Between 0.3 and 1.2 of either sign."""
    rng = np.random.default_rng(seed)
    return [nnc.asarray((rng.uniform(0.3, 1.2, s) * rng.choice([-1, 1], s)).astype(dtype)) for s in program.shapes]


def bound(program: Program, flow: Any) -> Scalar:
    """A function of the arrays alone."""
    return lambda *args: program.f(flow, *args)
