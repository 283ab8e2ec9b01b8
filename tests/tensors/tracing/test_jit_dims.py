"""jit on changing sizes: the second size gets a name, and no size is ever baked in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import SymbolicDimensionError
from nnc_core.values.tree import flatten
from tests.support import same
from tests.tensors.faults import fails

SIZES = ((2, 3), (4, 3), (5, 3), (1, 3), (7, 3), (0, 3))
Function = Callable[[Any], Any]


def example(shape: tuple[int, ...]) -> nnc.Tensor:
    return nnc.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def same_kind(found: Any, wanted: Any) -> None:
    """Structures of tensors and Python values, to the bit and to the type."""
    a, b = flatten(found), flatten(wanted)
    assert a[1] == b[1]
    for x, y in zip(a[0], b[0], strict=True):
        assert type(x) is type(y)
        if isinstance(x, nnc.Tensor):
            same(x, y)
        else:
            assert x == y


def runs_of(f: Function, shapes: tuple[tuple[int, ...], ...] = SIZES) -> int:
    """How often Python runs for these sizes, twice over; each result is what eager gives, and so is each error."""
    runs = []

    def counted(x: Any) -> Any:
        runs.append(x)
        return f(x)

    compiled = nnc.jit(counted)
    for shape in (*shapes, *shapes):
        x = example(shape)
        try:
            wanted = f(x)
        except nnc.Error as error:
            with pytest.raises(type(error)):
                compiled(x)
            continue
        same_kind(compiled(x), wanted)
    return len(runs)


POLYMORPHIC: dict[str, Function] = {
    "elementwise": lambda x: nnc.tanh(x) * 2,
    "catalogue: reshape((x.shape[0] * x.shape[1],))": lambda x: x.reshape((x.shape[0] * x.shape[1],)),
    "catalogue: x + arange(x.shape[0])": lambda x: x[:, 0] + nnc.arange(x.shape[0], dtype="float32"),
    "a range that begins and steps": lambda x: nnc.arange(1, x.shape[0] * 3 + 2, 3),
    "reduced": lambda x: nnc.mean(x, axis=0),
    "divided by a size": lambda x: x.sum() / x.shape[0],
    "times a size": lambda x: x.shape[0] * x.sum() - x.shape[0],
    "size in a function": lambda x: nnc.divide(x.sum(), x.shape[0]),
    "integers": lambda x: x.sum(axis=1).astype("int32"),
    "softmax": lambda x: nnc.softmax(x, axis=0),
    "sizes as results": lambda x: (x + 1, x.shape[0], {"n": x.size}),
    "gradient of a mean": nnc.grad(lambda x: (x * x).mean()),
    "cross entropy": nnc.grad(lambda x: nnc.cross_entropy(x, nnc.arange(x.shape[0]) % 3)),
    "matrix": lambda x: nnc.eye(x.shape[0]) @ x,
    "like": lambda x: x + nnc.ones(x.shape) + nnc.zeros_like(x),
    "broadcast": lambda x: x + nnc.broadcast_to(nnc.ones((1, 3)), x.shape),
}


@pytest.mark.parametrize("name", POLYMORPHIC)
def test_python_runs_twice_for_any_number_of_sizes(device: str, name: str) -> None:
    assert runs_of(POLYMORPHIC[name]) == 2


NUMBERS: dict[str, tuple[Function, int]] = {
    # one run for the first size, then one for each answer that differs
    "== 1": (lambda x: x * 10 if x.shape[0] == 1 else x + 1, 3),
    "!= 1": (lambda x: x + 1 if x.shape[0] != 1 else x * 10, 3),
    "> 3": (lambda x: x * 10 if x.shape[0] > 3 else x + 1, 4),
    "< and max": (lambda x: nnc.ones(max(x.shape[0], 3)) * (2 if x.shape[0] < 5 else 3), 5),
    "truth": (lambda x: x if x.shape[0] else x + 1, 3),
    "shape == (4, 3)": (lambda x: x * 2 if x.shape == (4, 3) else x, 3),
    # one run a size: Python needs the number
    "range": (lambda x: sum((x[i] for i in range(x.shape[0])), nnc.zeros(3)), 6),
    "rows": (lambda x: sum(x, nnc.zeros(3)), 6),
    "len": (lambda x: x * len(x), 6),
    "int": (lambda x: x * int(x.shape[0]), 6),
    "float": (lambda x: x * (x.shape[0] ** 0.5) / 2 + x.shape[0] / 4, 6),
    "modulo": (lambda x: x if x.shape[0] % 2 else x + 1, 6),
    "formatted": (lambda x: (x, f"{x.shape[0]} rows, {x.shape}, {x.shape[0]:03d}", str(x.shape[0])), 6),
    "in a set": (lambda x: x * 10 if x.shape[0] in {4, 5} else x, 6),
    "key of a dict": (lambda x: x * {4: 2.0, 7: 3.0}.get(x.shape[0], 1.0), 6),
    "in a tuple": (lambda x: x * 10 if x.shape[0] in (4, 5) else x, 5),
    "host array": (lambda x: x * np.ones(x.shape, np.float32), 6),
    "linspace": (lambda x: nnc.linspace(0, 1, x.shape[0]), 6),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_question_about_a_size_is_a_guard(device: str, name: str) -> None:
    """Never a silent choice: the answer is that of eager, whatever was asked."""
    f, runs = NUMBERS[name]
    assert runs_of(f) == runs


def test_code_that_fails_on_names_is_traced_for_each_size(device: str) -> None:
    def f(x: Any) -> Any:
        return x * x.shape[0].bit_length()

    assert runs_of(f) == len(SIZES) + 1, "with names it is tried once"


def is_int(x: Any) -> bool:
    match x:
        case int():
            return True
    return False


@pytest.mark.parametrize("f", [
    lambda x: x * 2 if isinstance(x.shape[0], int) else x * 3,
    lambda x: x * 2 if all([type(n) is int for n in x.shape]) else x * 3,
    lambda x: x * 2 if isinstance(x.shape[0], (np.integer, float)) else x * 3,
    lambda x: x * 2 if x.shape[0].__class__ is int else x * 3,
    lambda x: x * 2 if is_int(x.shape[0]) else x * 3,
], ids=["isinstance", "type", "NumPy's", "__class__", "match, in another function"])
def test_code_that_asks_for_ints_gets_ints(device: str, f: Function) -> None:
    """A size with a name is none, so that there it would take the other branch."""
    assert runs_of(f) == len(SIZES)


def test_an_error_that_is_the_codes_own_is_raised(device: str) -> None:
    def f(x: Any) -> Any:
        return x.reshape((x.shape[0], 4)) if x.shape[0] == 5 else x

    compiled = nnc.jit(f)
    compiled(example((2, 3)))
    compiled(example((3, 3)))
    for _ in range(2):
        with fails(ValueError, "(5, 4)", operator="reshape"):
            compiled(example((5, 3)))
    same_kind(compiled(example((6, 3))), example((6, 3)))


def test_a_size_that_an_operator_refuses_is_traced_as_it_is(device: str) -> None:
    """x[1:] of nothing is nothing, which the trace with a name does not know."""
    assert runs_of(lambda x: nnc.concat([x[1:], x])) == 3
    assert runs_of(lambda x: x[-1]) == 4, "what is an error in eager is traced, and raised, each time"


def test_dimensions_that_are_equal_by_chance(device: str) -> None:
    """The trace for 3 rows must not say that rows are columns, and the one for 4 must not say the opposite."""
    f = nnc.jit(lambda x: x @ x if x.shape[0] == x.shape[1] else x + nnc.ones((1, 3)))
    for n in (2, 4, 3, 5, 3, 2):
        x = example((n, 3))
        same_kind(f(x), x @ x if n == 3 else x + 1)
    assert runs_of(lambda x: x + nnc.ones((3, 3)), ((1, 3), (3, 3), (1, 3))) == 3


def test_sizes_that_change_together_share_a_name(device: str) -> None:
    f = nnc.jit(lambda x, y: x * y)
    for n in (2, 3, 4, 5):
        same_kind(f(example((n, 3)), example((n, 3))), example((n, 3)) * example((n, 3)))
    assert f.traces == 2
    with fails(ValueError, "broadcast", operator="multiply"):
        f(example((6, 3)), example((4, 3)))
    same_kind(f(example((6, 3)), example((1, 3))), example((6, 3)) * example((1, 3)))


def test_several_axes(device: str) -> None:
    f = nnc.jit(lambda x, y: nnc.tanh(x @ y).sum(axis=0))
    for n, m, k in ((2, 3, 4), (5, 3, 4), (2, 6, 4), (7, 8, 9), (9, 8, 7)):
        x, y = example((n, m)) / 9, example((m, k)) / 9
        same_kind(f(x, y), nnc.tanh(x @ y).sum(axis=0))
    assert f.traces <= 4


def test_trained_on_batches_of_any_size(device: str) -> None:
    """The last batch of an epoch is smaller: state goes on."""
    w = nnc.Cell(nnc.ones((3, 1)), "w")

    @nnc.jit
    def step(x: Any) -> Any:
        def loss(w: Any) -> Any:
            return ((x @ w) ** 2).mean()

        value, gradient = nnc.value_and_grad(loss)(w.read())
        w.write(w.read() - 0.001 * gradient)
        return value

    plain = nnc.ones((3, 1))
    for n in (4, 4, 2, 3, 1, 4, 5):
        x = example((n, 3))
        value, gradient = nnc.value_and_grad(lambda w, x=x: ((x @ w) ** 2).mean())(plain)
        plain = plain - 0.001 * gradient
        np.testing.assert_allclose(step(x).numpy(), value.numpy(), rtol=1e-5)
    np.testing.assert_allclose(w.read().numpy(), plain.numpy(), rtol=1e-5)
    assert step.traces == 2


def test_names_can_be_switched_off(device: str) -> None:
    f = nnc.jit(lambda x: (x * 2, x.shape[0]), named_dims=False)
    for n in (2, 3, 4, 5):
        same_kind(f(example((n, 3))), (example((n, 3)) * 2, n))
    assert f.traces == 4


def test_what_traces_hold_for_is_explained(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: x * 2 if x.shape[0] > 1 else x)
    f(x)
    text = f.explain(example((4, 3)))
    assert "f" not in text.split("(")[0] and "named dimensions: x.0 = 4" in text and "guard: " in text
    assert "argument 0 `x`: float32[2,3]" in text and "-> float32[4,3]" in text


def test_a_size_is_no_number_after_the_trace(x: nnc.Tensor) -> None:
    kept = []
    f = nnc.jit(lambda x: kept.append(x.shape[0]) or x)
    f(x)
    f(example((4, 3)))
    with pytest.raises(SymbolicDimensionError, match="has no number"):
        int(kept[1])


def test_a_mistake_of_rank_is_another_family(device: str) -> None:
    f = nnc.jit(lambda x: x.sum())
    for shape in ((2,), (2, 3), (3,), (4, 5), (6,)):
        same_kind(f(example(shape)), example(shape).sum())
    assert f.traces == 4
