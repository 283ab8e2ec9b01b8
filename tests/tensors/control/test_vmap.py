"""vmap: functions of one example on many, against Python loops; what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import (
    AttributeValueError,
    AxisError,
    ConcretizationError,
    DeferredInplaceError,
    DTypeError,
    LeakedTraceError,
    OperandError,
    ShapeError,
)
from tests.support import eagerly, lazily
from tests.tensors.control.examples import near, numbers

Host = np.ndarray[Any, Any]


RUNS = pytest.mark.parametrize("run", [eagerly, nnc.jit, lazily], ids=["eager", "jit", "deferred"])


# ---- axes
def layer(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
    """(3), (3, 2) -> (2)"""
    return nnc.tanh(x @ w) + x[0]


@RUNS
@pytest.mark.parametrize(("in_axes", "x", "w"), [
    (0, (4, 3), (4, 3, 2)), ((0, None), (4, 3), (3, 2)), ((None, 0), (3,), (4, 3, 2)), ((1, 2), (3, 4), (3, 2, 4)),
    ((-1, -2), (3, 4), (3, 4, 2)), ([0, 1], (4, 3), (3, 4, 2)), ((1, None), (3, 4), (3, 2)),
])  # fmt: skip
def test_any_axis_may_go_over_the_examples(device: str, run: Any, in_axes: Any, x: Any, w: Any) -> None:
    a, b = numbers(*x), numbers(*w, seed=1)
    axes = (in_axes, in_axes) if isinstance(in_axes, int) else tuple(in_axes)
    parts = [[t.numpy()] * 4 if k is None else list(np.moveaxis(t.numpy(), k, 0))
             for t, k in zip((a, b), axes, strict=True)]
    wanted = np.stack([layer(nnc.asarray(p), nnc.asarray(q)).numpy() for p, q in zip(*parts, strict=True)])
    near(run(nnc.vmap(layer, in_axes))(a, b), wanted)


@RUNS
@pytest.mark.parametrize("out_axes", [0, 1, 2, -1, -3])
def test_the_examples_may_come_out_along_any_axis(device: str, run: Any, out_axes: int) -> None:
    x = numbers(4, 2, 3)
    found = run(nnc.vmap(lambda m: m * 2 + m[0, 0], out_axes=out_axes))(x)
    wanted = x.numpy() * 2 + x.numpy()[:, :1, :1]
    near(found, np.moveaxis(wanted, 0, out_axes))


def test_trees_go_in_and_come_out(device: str) -> None:
    tree = {"a": numbers(4, 3), "b": (numbers(4), [numbers(4, 3, seed=1)])}
    found = nnc.vmap(lambda t, k: {"s": (t["a"] * t["b"][0] + k["c"], None), "r": [t["b"][1][0]]}, (0, None))(
        tree, {"c": nnc.asarray(1.0)})
    near(found["s"][0], tree["a"].numpy() * tree["b"][0].numpy()[:, None] + np.float32(1))
    near(found["r"][0], tree["b"][1][0])
    assert found["s"][1] is None


@RUNS
@pytest.mark.parametrize(("out_axes", "each"), [
    (1, (1, 1, 1)), ((1, 0), (1, 0, 0)), ([-1, {"s": 1, "t": -1}], (-1, 1, -1)), ((0, {"s": 0, "t": 1}), (0, 0, 1)),
])  # fmt: skip
def test_axes_part_by_part(device: str, run: Any, out_axes: Any, each: tuple[int, ...]) -> None:
    a, parts = numbers(4, 2), {"w": (numbers(3), None), "x": numbers(2, 4, seed=1)}

    def f(row: nnc.Tensor, d: Any) -> Any:
        return row + d["x"], {"s": d["w"][0] * row[0], "t": d["x"]}

    found = run(nnc.vmap(f, (0, {"w": None, "x": 1}), out_axes))(a, parts)
    x = parts["x"].numpy().T
    wanted = a.numpy() + x, parts["w"][0].numpy() * a.numpy()[:, :1], x
    for y, z, axis in zip((found[0], found[1]["s"], found[1]["t"]), wanted, each, strict=True):
        near(y, np.moveaxis(z, 0, axis))


def test_numbers_and_what_does_not_depend_on_examples(device: str) -> None:
    a, b, c = nnc.vmap(lambda x, k: (x * k, k, 3), (0, None))(numbers(4), 2.0)
    near(a, numbers(4).numpy() * np.float32(2))
    assert b.tolist() == [2.0] * 4 and c.tolist() == [3] * 4


def test_no_examples_at_all(device: str) -> None:
    found = nnc.vmap(lambda x: (nnc.sum(x), x * 2))(nnc.zeros((0, 3)))
    assert [y.shape for y in found] == [(0,), (0, 3)]


def test_a_name_for_the_number_of_examples(device: str) -> None:
    """The second size gets a name: batched code is traced once more, not for every size."""
    f = nnc.jit(nnc.vmap(lambda x: nnc.tanh(x) @ nnc.ones((3,)) + nnc.scan(lambda c, r: (c + r, None), x[0], x)[0]))
    for n in (2, 5, 3, 7):
        x = numbers(n, 3)
        near(f(x), np.tanh(x.numpy()).sum(1) + x.numpy()[:, 0] + x.numpy().sum(1))
    assert f.traces <= 2


# ---- inside and outside of other transforms
@RUNS
def test_vmap_of_vmap(device: str, run: Any) -> None:
    """All pairs: the inner one goes over columns of the second argument."""
    x, y = numbers(4, 3), numbers(3, 5, seed=1)
    pairs = nnc.vmap(nnc.vmap(lambda a, b: nnc.sum(a * b) + a[0], (None, 1)), (0, None))
    near(run(pairs)(x, y), x.numpy() @ y.numpy() + x.numpy()[:, :1])


@RUNS
def test_gradients_of_each_example(device: str, run: Any) -> None:
    x, w = numbers(4, 3), numbers(3, seed=1)

    def loss(w: nnc.Tensor, x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.sin(x * w)) ** 2

    found = run(nnc.vmap(nnc.grad(loss), (None, 0)))(w, x)
    near(found, np.stack([nnc.grad(loss)(w, row).numpy() for row in x]))
    whole = run(nnc.grad(lambda w: nnc.sum(nnc.vmap(loss, (None, 0))(w, x))))(w)
    near(whole, found.numpy().sum(0))
    tangents = run(nnc.vmap(lambda x, v: nnc.jvp(lambda x: loss(w, x), (x,), (v,))[1]))(x, x * 2)
    near(tangents, (nnc.grad(lambda x: nnc.sum(nnc.vmap(loss, (None, 0))(w, x)))(x) * x * 2).numpy().sum(1))


@RUNS
def test_control_flow_inside(device: str, run: Any) -> None:
    """Each example goes round as often as it needs, and takes its own branch."""

    def f(x: nnc.Tensor) -> nnc.Tensor:
        (y,) = nnc.while_loop(lambda y: nnc.sum(y) < 5.0, lambda y: (y * 2.0,), (x,))
        return nnc.cond(y[0] > y[1], lambda y: y * 10.0, lambda y: y, y)

    x = nnc.asarray([[0.1, 0.2], [3.0, 2.5], [1.0, 0.5]])
    near(run(nnc.vmap(f))(x), [row.numpy() for row in map(f, x)])


def test_a_jitted_function_inside(device: str) -> None:
    f = nnc.jit(lambda x: nnc.tanh(x) * 2)
    near(nnc.vmap(f)(numbers(4, 3)), np.tanh(numbers(4, 3).numpy()) * 2)


def test_outside_tensors_are_read_anew(device: str) -> None:
    w = nnc.asarray([1.0, 2.0])
    f = nnc.jit(nnc.vmap(lambda x: x * w))
    assert f(nnc.ones((2, 2))).tolist() == [[1, 2], [1, 2]]
    w[...] = 3.0
    assert f(nnc.ones((2, 2))).tolist() == [[3, 3], [3, 3]] and f.traces == 1


def test_variables_outside_get_gradients(device: str) -> None:
    w = nnc.variable([1.0, 2.0])
    nnc.sum(nnc.vmap(lambda x: x * w * w)(numbers(4, 2))).backward()
    near(w.grad, numbers(4, 2).numpy().sum(0) * np.float32(2) * w.numpy())


# ---- state, random numbers, effects: one example after another
@RUNS
def test_random_numbers_are_those_of_a_loop(device: str, run: Any) -> None:
    x = numbers(3, 2)

    def noisy(x: nnc.Tensor) -> nnc.Tensor:
        return x + generator.normal((2,)) * generator.uniform(())

    generator = nnc.Generator(7)
    found = run(nnc.vmap(noisy))(x).numpy()
    after = generator.uniform(()).item()
    generator = nnc.Generator(7)
    near(found, np.stack([noisy(row).numpy() for row in x]))
    assert generator.uniform(()).item() == after


@RUNS
def test_keys_may_be_given_to_each_example(device: str, run: Any) -> None:
    """Random numbers are functions of keys: batched, they are drawn for all at once and equal those drawn alone."""
    generators = nnc.Generator(3).spawn(4)
    keys = nnc.stack([g.key.read() for g in generators])

    def draw(key: nnc.Tensor) -> nnc.Tensor:
        from nnc_core.values.dispatch import F

        return nnc.Tensor(F.uniform(key._value, shape=(3,), dtype=nnc.float32))

    near(run(nnc.vmap(draw))(keys), np.stack([g.uniform((3,)).numpy() for g in generators]))


@RUNS
def test_state_goes_from_example_to_example(device: str, run: Any) -> None:
    cell = nnc.Cell(nnc.asarray(1.0))

    def f(x: nnc.Tensor) -> nnc.Tensor:
        cell.write(cell.read() * x)
        return cell.read() + 1

    assert run(nnc.vmap(f))(nnc.asarray([2.0, 3.0, 4.0])).tolist() == [3, 7, 25]
    assert cell.read().item() == 24


@pytest.mark.parametrize("run", [eagerly, nnc.jit], ids=["eager", "jit"])
def test_effects_come_in_the_order_of_the_examples(device: str, run: Any) -> None:
    seen: list[Any] = []

    def f(x: nnc.Tensor) -> nnc.Tensor:
        nnc.callback(lambda a: seen.append(("first", a.tolist())), None, x[0])
        y = nnc.callback(lambda a: a * 2, nnc.TensorSpec((2,), x.dtype), x)
        nnc.callback(lambda a: seen.append(("second", a.tolist())), None, y[1])
        return y

    x = nnc.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert run(nnc.vmap(f))(x).tolist() == [[2, 4], [6, 8]]
    assert seen == [("first", 1), ("second", 4), ("first", 3), ("second", 8)]


def test_a_callback_without_effects_is_called_for_each_example(device: str) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.callback(lambda a: np.sort(a), x.spec, x, vjp=lambda g, a: g[np.argsort(np.argsort(a))])

    x = nnc.asarray([[3.0, 1.0, 2.0], [1.0, 2.0, 0.0]])
    near(nnc.vmap(f)(x), np.sort(x.numpy(), 1))
    weights = nnc.asarray([1.0, 2.0, 3.0])
    slope = nnc.grad(lambda x: nnc.sum(nnc.vmap(f)(x) * weights))(x)
    assert slope.tolist() == [[3, 1, 2], [2, 3, 1]]


# ---- what it refuses
def test_numbers_of_examples_must_agree(device: str) -> None:
    with pytest.raises(ShapeError, match=r"vmap: no one number of examples: float32\[4,3\] along 0, float32\[3\] "):
        nnc.vmap(lambda a, b: a)(numbers(4, 3), numbers(3))
    with pytest.raises(ShapeError, match="no argument has an axis for them") as caught:
        nnc.vmap(lambda a: a, None)(numbers(4))
    assert "in_axes says" in str(caught.value) and "test_vmap.py" in str(caught.value)


@pytest.mark.parametrize(("in_axes", "kind", "message"), [
    (2, AxisError, r"argument 0 is float32\[4,3\]: it has no axis 2"), (-3, AxisError, "no axis -3"),
    ((0, 1), AxisError, "in_axes has 2 entries for 1 argument"), ((), AxisError, "in_axes has 0 entries"),
    ("x", AttributeValueError, "axis 'x' is no integer"), (0.5, AttributeValueError, "axis 0.5 is no integer"),
    (True, AttributeValueError, "axis True is no integer"),
])  # fmt: skip
def test_axes_that_are_not_there(device: str, in_axes: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=f"vmap: .*{message}") as caught:
        nnc.vmap(lambda a: a, in_axes)(numbers(4, 3))
    assert "test_vmap.py" in str(caught.value)


@pytest.mark.parametrize(("in_axes", "out_axes", "message"), [
    (({"x": 0},), 0, r"in_axes says \{'x': 0\}, which has 1 names, for dict of 'w', 'x'"),
    (({"x": 0, "w": (0, 0, 0)},), 0, "in_axes says .0, 0, 0., which has 3 entries, for list of 2"),
    (({"x": (0,), "w": 0},), 0, "in_axes says .0,., which has 1 entries, for a tensor"),
    (0, (0, 0, 0), "out_axes says .0, 0, 0., which has 3 entries, for tuple of 2"),
    (0, {"a": 0}, r"out_axes says \{'a': 0\}, which has 1 names, for tuple of 2"),
    (0, (0, None), "out_axes has a None"),
])  # fmt: skip
def test_axes_of_another_structure(device: str, in_axes: Any, out_axes: Any, message: str) -> None:
    tree = {"x": numbers(4), "w": [numbers(4), numbers(4)]}
    with pytest.raises(AxisError, match=f"vmap: {message}") as caught:
        nnc.vmap(lambda d: (d["x"], d["w"][0]), in_axes, out_axes)(tree)
    assert "test_vmap.py" in str(caught.value)


def test_an_axis_of_the_result_that_is_not_there(device: str) -> None:
    with pytest.raises(AxisError, match="axis 2 is out of range for 2 dimensions"):
        nnc.vmap(lambda a: a, out_axes=2)(numbers(4, 3))


def test_a_number_has_no_examples(device: str) -> None:
    with pytest.raises(AxisError, match=r"argument 1 is float32\[\]: it has no axis 0") as caught:
        nnc.vmap(lambda a, b: a + b)(numbers(4), 2.0)
    assert "None: it is the same for all" in str(caught.value)


def test_what_is_no_tensor(device: str) -> None:
    with pytest.raises(OperandError, match="vmap: str is no array and no number"):
        nnc.vmap(lambda a: a)("text")
    with pytest.raises(OperandError, match="vmap: str is no array and no number"):
        nnc.vmap(lambda a: "text")(numbers(4))
    with pytest.raises(OperandError, match="vmap: int is no function"):
        nnc.vmap(3)  # type: ignore[arg-type]
    assert nnc.vmap(lambda a: None)(numbers(4)) is None


def test_python_cannot_choose_by_an_example(device: str) -> None:
    with pytest.raises(ConcretizationError, match=r"truth value of a symbol bool.*'vmap of choose'") as caught:
        def choose(a: nnc.Tensor) -> nnc.Tensor:
            return a if a[0] > 0 else -a

        nnc.vmap(choose)(numbers(4, 3))
    assert "nnc.cond" in str(caught.value) and "in choose" in str(caught.value)


def test_an_example_does_not_leave_its_function(device: str) -> None:
    kept: list[nnc.Tensor] = []
    nnc.vmap(lambda a: (kept.append(a), a * 2)[1])(numbers(4, 3))
    with pytest.raises(LeakedTraceError, match=r"symbolic tensor float32\[3\] outlived 'vmap of"):
        kept[0] + 1


def test_an_example_is_changed_in_place_and_nothing_outside(device: str) -> None:
    x, outer = numbers(4, 3), nnc.zeros(3)

    def change(a: nnc.Tensor) -> nnc.Tensor:
        a += 1
        return a

    def change_outer(a: nnc.Tensor) -> nnc.Tensor:
        outer[0] = a[0]
        return a

    near(nnc.vmap(change)(x), numbers(4, 3) + 1)
    with pytest.raises(DeferredInplaceError, match="in-place change") as caught:
        nnc.vmap(change_outer)(x)
    assert "in change_outer" in str(caught.value) and ".at[key].set" in str(caught.value)
    near(x, numbers(4, 3))
    assert outer.tolist() == [0, 0, 0]


def test_a_cell_takes_what_it_takes(device: str) -> None:
    cell = nnc.Cell(nnc.asarray(1.0))

    def f(a: nnc.Tensor) -> nnc.Tensor:
        cell.write(nnc.sum(a).astype(nnc.float16))
        return a

    with pytest.raises(DTypeError, match="holds float32"):
        nnc.vmap(f)(numbers(4, 3))
    assert cell.read().item() == 1.0


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_settings_are_given_by_name(jit: bool) -> None:
    def scaled(x: nnc.Tensor, *, scale: float = 1.0, axes: tuple[int, ...] = (), shift: bool = False) -> nnc.Tensor:
        return nnc.sum(x * scale, axis=axes) + (1.0 if shift else 0.0)

    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    batched = nnc.vmap(scaled)
    run = nnc.jit(lambda x: batched(x, scale=2.0, axes=(1,), shift=True)) if jit else batched
    got = run(nnc.asarray(x)) if jit else run(nnc.asarray(x), scale=2.0, axes=(1,), shift=True)
    np.testing.assert_allclose(got.numpy(), x.sum(axis=2) * 2 + 1)


@pytest.mark.parametrize("given", [np.ones(4), [np.ones(4)], {"b": nnc.ones(4)}], ids=["array", "in a list", "tensor"])
def test_arrays_by_name_are_refused(given: Any) -> None:
    with pytest.raises(OperandError, match=r"(?s)arrays by name: b.*test_vmap\.py.*try: by position"):
        nnc.vmap(lambda a, b: a)(nnc.ones(4), b=given)
