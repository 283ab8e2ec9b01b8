"""Derivatives of functions: reverse and forward, any order, eager, deferred and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails

Scalar = Callable[..., nnc.Tensor]


def in_deferred(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        with nnc.deferred():
            return f(*args)

    return call


each_mode = pytest.mark.parametrize("run", [lambda f: f, in_deferred, nnc.jit], ids=["eager", "deferred", "jit"])


@pytest.fixture
def doubles(device: str) -> str:
    """float64 where the device has it."""
    from nnc_core.stacks import stack_for

    if "float64" not in stack_for(device).device.spec.dtypes:
        pytest.skip(f"{device} has no float64")
    return device


def book(x: Any, y: Any) -> nnc.Tensor:
    """The example of Owl's book, 6.2.2."""
    return nnc.sum((x * nnc.sin(x + x) + nnc.sqrt(x) / 7.0) * nnc.relu(y))


BOOK = 4.20861827873129801


@each_mode
def test_the_books_example(doubles: str, run: Callable[..., Any]) -> None:
    x, y = nnc.ones((2, 2), dtype=nnc.float64), nnc.asarray(2.0, dtype=nnc.float64)
    assert run(nnc.grad(book, 1))(x, y).item() == pytest.approx(BOOK, rel=2e-16, abs=0)


def test_the_books_example_with_symbols(doubles: str) -> None:
    x, y = nnc.var_arr("x", (2, 2), dtype=nnc.float64), nnc.var_elt("y", dtype=nnc.float64)
    z = nnc.grad(book, 1)(x, y)
    graph = nnc.make_graph([x, y], [z], "graph")
    nnc.assign(x, np.ones((2, 2)))
    nnc.assign(y, 2.0)
    nnc.eval_graph(graph)
    assert nnc.unpack_elt(z) == pytest.approx(BOOK, rel=2e-16, abs=0)


def test_the_books_example_by_backward(doubles: str) -> None:
    x, y = nnc.ones((2, 2), dtype=nnc.float64), nnc.variable(2.0, dtype=nnc.float64)
    book(x, y).backward()
    assert y.grad is not None and y.grad.item() == pytest.approx(BOOK, rel=2e-16, abs=0)


@each_mode
def test_equal_steps_are_different_values(device: str, run: Callable[..., Any]) -> None:
    """a = x * 3; b = x * 3: d(a b)/da is b, which is 6 for x = 2, and not 2 a."""

    def f(x: Any) -> Any:
        b = x * 3
        return nnc.grad(lambda a: a * b)(x * 3), nnc.grad(lambda x: (x * 3) * (x * 3))(x)

    through_a, through_both = run(f)(nnc.asarray(2.0))
    assert through_a.item() == 6.0 and through_both.item() == 36.0


@each_mode
def test_variables_from_around_the_function(device: str, run: Callable[..., Any]) -> None:
    w = nnc.asarray([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        scaled = w * 2
        return nnc.grad(lambda v: nnc.sum(v * scaled * w))(x)

    assert run(f)(nnc.ones(3)).tolist() == [2.0, 8.0, 18.0]


@each_mode
def test_gradients_of_gradients_through_what_is_closed_over(device: str, run: Callable[..., Any]) -> None:
    """The inner gradient depends on the outer variable: d/dy (d/dx x y^2) at x = 1, y = 3 is 6."""

    def f(y: Any) -> Any:
        return nnc.grad(lambda y: nnc.grad(lambda x: x * y * y)(nnc.ones(())))(y)

    assert run(f)(nnc.asarray(3.0)).item() == 6.0


@each_mode
def test_perturbations_are_not_confused(device: str, run: Callable[..., Any]) -> None:
    """d/dx (x * d/dy (x + y)) = 1, not 2."""

    def f(x: Any) -> Any:
        return nnc.grad(lambda x: x * nnc.grad(lambda y: x + y)(nnc.ones(())))(x)

    assert run(f)(nnc.asarray(5.0)).item() == 1.0


@each_mode
@pytest.mark.parametrize(("order", "wanted"), [(1, 4.0), (2, 12.0), (3, 24.0), (4, 24.0), (5, 0.0)])
def test_any_order(device: str, run: Callable[..., Any], order: int, wanted: float) -> None:
    """x^4 at 1."""
    f: Any = lambda x: x * x * x * x  # noqa: E731
    for _ in range(order):
        f = nnc.grad(f)
    assert run(f)(nnc.asarray(1.0)).item() == pytest.approx(wanted)


class Example(NamedTuple):
    f: Scalar
    shapes: tuple[tuple[int, ...], ...]


EXAMPLES = {
    "polynomial": Example(lambda x, y: nnc.sum(x * x * y - y / (x + 4)), ((3,), (3,))),
    "broadcast": Example(lambda x, y: nnc.sum(nnc.tanh(x + y) * y), ((2, 3), (3,))),
    "matrices": Example(lambda a, b: nnc.sum(nnc.sigmoid(a @ b) ** 2), ((2, 3), (3, 2))),
    "softmax": Example(lambda x, y: nnc.sum(nnc.log_softmax(x) * nnc.softmax(y)), ((2, 3), (2, 3))),
    "items": Example(lambda x, y: nnc.sum(x.at[0].add(y)[:, 1:] ** 3), ((2, 3), (3,))),
    "statistics": Example(lambda x, y: nnc.mean(nnc.exp(x - nnc.mean(x, axis=0)) * y.T), ((2, 3), (3, 2))),
}
each_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def _points(example: Example, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.uniform(-1, 1, shape) for shape in example.shapes]


def _slopes(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Central differences: shape (*result, *x)."""
    columns = []
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        columns.append((f(x + step) - f(x - step)) / (2 * h))
    return np.moveaxis(np.array(columns).reshape(*x.shape, *np.shape(columns[0])), range(x.ndim),
                       range(-x.ndim, 0)) if x.ndim else columns[0]


@each_example
@each_mode
def test_gradients_equal_finite_differences(doubles: str, rng: np.random.Generator, run: Callable[..., Any],
                                            example: Example) -> None:
    x, y = _points(example, rng)
    grads = run(nnc.grad(example.f, (0, 1)))(nnc.asarray(x), nnc.asarray(y))
    by_x = _slopes(lambda v: example.f(nnc.asarray(v), nnc.asarray(y)).numpy(), x)
    by_y = _slopes(lambda v: example.f(nnc.asarray(x), nnc.asarray(v)).numpy(), y)
    for found, wanted in zip(grads, (by_x, by_y), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-8)


@each_example
def test_hessians_equal_finite_differences(doubles: str, rng: np.random.Generator, example: Example) -> None:
    x, y = _points(example, rng)
    found = nnc.hessian(example.f)(nnc.asarray(x), nnc.asarray(y)).numpy()
    wanted = _slopes(lambda v: nnc.grad(example.f)(nnc.asarray(v), nnc.asarray(y)).numpy(), x)
    assert found.shape == (*x.shape, *x.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    by_y = nnc.hessian(example.f, 1)(nnc.asarray(x), nnc.asarray(y))
    assert by_y.shape == (*y.shape, *y.shape)


@each_example
@each_mode
def test_forward_and_reverse_agree(doubles: str, rng: np.random.Generator, run: Callable[..., Any],
                                   example: Example) -> None:
    x, y = (nnc.asarray(p) for p in _points(example, rng))
    tx, ty = (nnc.asarray(p) for p in _points(example, rng))

    def both(x: Any, y: Any, tx: Any, ty: Any) -> Any:
        value, slope = nnc.jvp(example.f, (x, y), (tx, ty))
        again, pull = nnc.vjp(example.f, x, y)
        gx, gy = pull(nnc.ones_like(again))
        return value, again, slope, nnc.sum(gx * tx) + nnc.sum(gy * ty)

    value, again, slope, product = run(both)(x, y, tx, ty)
    assert value.item() == again.item() == example.f(x, y).item()
    assert slope.item() == pytest.approx(product.item(), rel=1e-12)


def test_jacobians(doubles: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (2, 3))
    a = nnc.asarray(rng.uniform(-1, 1, (3, 2)))

    def f(v: nnc.Tensor) -> nnc.Tensor:
        return nnc.tanh(v @ a)[:, :1] * v

    found = nnc.jacobian(f)(nnc.asarray(x))
    assert found.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(found.numpy(), _slopes(lambda v: f(nnc.asarray(v)).numpy(), x), rtol=1e-6, atol=1e-8)
    scalar = nnc.jacobian(lambda v: nnc.sum(v * v))(nnc.asarray(x))
    np.testing.assert_allclose(scalar.numpy(), 2 * x)
    assert nnc.jacobian(lambda v: v[:0])(nnc.asarray(x)).shape == (0, 3, 2, 3)


def test_second_argument_and_several(device: str) -> None:
    f = lambda a, b, c: nnc.sum(a * b * b * c)  # noqa: E731
    a, b, c = nnc.asarray([1.0]), nnc.asarray([2.0]), nnc.asarray([3.0])
    assert nnc.grad(f, 1)(a, b, c).tolist() == [12.0]
    gc, ga = nnc.grad(f, (2, 0))(a, b, c)
    assert gc.tolist() == [4.0] and ga.tolist() == [12.0]
    assert isinstance(nnc.grad(f, [0])(a, b, c), tuple)
    assert nnc.jacobian(lambda a, b: a * b * b, 1)(a, b).tolist() == [[4.0]]


def test_nested_arguments_give_nested_gradients(device: str) -> None:
    class Layer(NamedTuple):
        w: Any
        b: Any

    tree = {"layers": [Layer(nnc.asarray([2.0]), nnc.asarray([1.0])), Layer(nnc.asarray([3.0]), None)], "x": ()}

    def f(t: Any, x: Any) -> nnc.Tensor:
        first, second = t["layers"]
        return nnc.sum((x * first.w + first.b) * second.w)

    value, grads = nnc.value_and_grad(f)(tree, nnc.asarray([4.0]))
    assert value.item() == 27.0 and isinstance(grads["layers"][0], Layer) and grads["x"] == ()
    assert [grads["layers"][0].w.item(), grads["layers"][0].b.item(), grads["layers"][1].w.item()] == [12.0, 3.0, 9.0]
    assert grads["layers"][1].b is None


def test_auxiliary_results(device: str) -> None:
    def f(x: Any) -> Any:
        y = x * x
        return nnc.sum(y), {"squares": y, "note": "kept"}

    (value, aux), g = nnc.value_and_grad(f, has_aux=True)(nnc.asarray([1.0, 3.0]))
    assert value.item() == 10.0 and aux["note"] == "kept" and aux["squares"].tolist() == [1.0, 9.0]
    assert g.tolist() == [2.0, 6.0] and not aux["squares"].requires_grad


def test_keyword_arguments_are_handed_on(device: str) -> None:
    assert nnc.grad(lambda x, *, power: nnc.sum(x**power))(nnc.asarray([2.0]), power=3).tolist() == [12.0]


def test_what_does_not_matter_has_a_gradient_of_zeros(device: str) -> None:
    gx, gy = nnc.grad(lambda x, y: nnc.sum(x), (0, 1))(nnc.ones(2), nnc.ones((3, 1)))
    assert gx.tolist() == [1.0, 1.0] and gy.tolist() == [[0.0], [0.0], [0.0]]
    assert nnc.grad(lambda x: nnc.sum(nnc.sign(x)) * 0 + nnc.asarray(1.0))(nnc.ones(2)).tolist() == [0.0, 0.0]


def test_constants_to_differentiation(device: str) -> None:
    x = nnc.asarray([2.0])
    assert nnc.grad(lambda x: nnc.sum(x * nnc.stop_gradient(x)))(x).tolist() == [2.0]
    assert nnc.grad(lambda x: nnc.sum(x * x.detach()))(x).tolist() == [2.0]

    def inside(x: Any) -> nnc.Tensor:
        with nnc.no_grad():
            y = x * x
        return nnc.sum(x * y)

    assert nnc.grad(inside)(x).tolist() == [4.0]
    with nnc.no_grad():
        assert nnc.grad(lambda x: nnc.sum(x * x))(x).tolist() == [4.0], "grad says what it wants"


def test_gradients_keep_no_history(device: str) -> None:
    value, g = nnc.value_and_grad(lambda x: nnc.sum(x * x))(nnc.asarray([2.0]))
    assert not value.requires_grad and not g.requires_grad and g._value.step is None


def test_shared_values_add_up(device: str) -> None:
    def f(x: Any) -> nnc.Tensor:
        y = nnc.exp(x)
        return y * y + y

    g = nnc.grad(f)(nnc.asarray(0.0))
    assert g.item() == 3.0


def test_only_float_scalars_have_gradients(x: nnc.Tensor) -> None:
    with fails(ValueError, "float32[2,3]", "scalar", line=False):
        nnc.grad(lambda x: x * 2)(x)
    with fails(ValueError, "only floating-point tensors", line=False):
        nnc.grad(lambda x: nnc.sum(x))(nnc.asarray(np.array([1, 2])))
    with fails(ValueError, "float", line=False):
        nnc.grad(lambda x: 3.0)(x)
    with fails(ValueError, "by int", line=False):
        nnc.grad(lambda x: nnc.sum(x))(3)
    with fails(ValueError, "bool[]", line=False):
        nnc.grad(lambda x: nnc.any(x > 0))(x)


def test_cotangents_and_tangents_must_fit(x: nnc.Tensor) -> None:
    _, pull = nnc.vjp(lambda x: x * 2, x)
    with fails(ValueError, "float32[3]", "float32[2,3]", line=False):
        pull(nnc.ones(3))
    with fails(ValueError, "float32[3]", "float32[2,3]", line=False):
        nnc.jvp(lambda x: x * 2, (x,), (nnc.ones(3),))


def test_an_error_of_the_function_is_the_users(x: nnc.Tensor) -> None:
    def f(x: Any) -> nnc.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nnc.grad(f)(x)
    y = x * 2
    assert not y.requires_grad and nnc.grad(lambda x: nnc.sum(x))(x).shape == (2, 3)


@pytest.mark.parametrize("recorded", [False, True])
def test_results_are_constants_unless_somebody_can_differentiate_them(device: str, recorded: bool) -> None:
    x, w = nnc.asarray([1.0, 2.0, 3.0]), nnc.variable([1.0, 2.0, 3.0])

    def scalar(v: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.sin(v) * v)

    def looped(v: nnc.Tensor) -> nnc.Tensor:
        return nnc.while_loop(lambda v, i: i < 2, lambda v, i: (v * v[0], i + 1), (v, nnc.asarray(0)))[0]

    def all_of(f: Any, g: Any) -> list[Any]:
        y, pull = nnc.vjp(g, x)
        return [*nnc.value_and_grad(f)(x), nnc.jacobian(g)(x), nnc.hessian(f)(x), y, *pull(x), *nnc.jvp(g, (x,), (x,)),
                *nnc.gradhessian(f)(x), nnc.laplacian(f)(x), nnc.jacobian(nnc.hessian(f))(x), nnc.jacobian(looped)(x)]

    with nnc.deferred() if recorded else nullcontext():
        plain = all_of(scalar, nnc.sin)
        of_variable = all_of(lambda v: scalar(v * w), lambda v: v * v * w)[:-1]
    assert [t.requires_grad for t in plain] == [False] * len(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in plain:
            np.asarray(t)
    assert all(t.requires_grad for t in of_variable)
    nnc.sum(of_variable[2]).backward()
    assert w.grad is not None and w.grad.tolist() == [2, 4, 6]


@each_mode
def test_a_gradient_with_something_beside(run: Any, device: str) -> None:
    x, y = nnc.asarray([1.0, 2.0]), nnc.asarray([3.0, 4.0])

    def loss(a: nnc.Tensor, b: nnc.Tensor, scale: float = 1.0) -> tuple[nnc.Tensor, dict[str, nnc.Tensor]]:
        return nnc.sum(a * a * b) * scale, {"product": a * b}

    gradient, aux = run(lambda a, b: nnc.grad(loss, has_aux=True)(a, b, scale=2.0))(x, y)
    assert gradient.tolist() == [12, 32] and aux["product"].tolist() == [3, 8]
    (by_a, by_b), aux = run(nnc.grad(loss, argnums=(0, 1), has_aux=True))(x, y)
    assert by_a.tolist() == [6, 16] and by_b.tolist() == [1, 4] and not aux["product"].requires_grad


@each_mode
def test_arguments_by_name_are_passed_on(run: Any, device: str) -> None:
    x = nnc.asarray([1.0, 2.0])

    def cube(v: nnc.Tensor, *, scale: float) -> nnc.Tensor:
        return scale * v * v * v

    def scalar(v: nnc.Tensor, *, scale: float) -> nnc.Tensor:
        return nnc.sum(cube(v, scale=scale))

    assert run(lambda v: nnc.jacobian(cube)(v, scale=2.0))(x).tolist() == [[6, 0], [0, 24]]
    assert run(lambda v: nnc.hessian(scalar)(v, scale=2.0))(x).tolist() == [[12, 0], [0, 24]]
    assert run(lambda v: nnc.gradhessian(scalar)(v, scale=2.0)[1])(x).tolist() == [[12, 0], [0, 24]]
    assert run(lambda v: nnc.laplacian(scalar)(v, scale=2.0))(x).item() == 36


@pytest.mark.parametrize(("f", "said", "hint"), [
    (lambda x: nnc.jacobian(lambda p: p["a"])({"a": x}), "jacobian: a Jacobian by dict", "nnc.vjp takes structures"),
    (lambda x: nnc.jacobian(lambda a, b: a * b, argnums=(0, 1)), r"jacobian: argnums \(0, 1\)", "one call for each"),
    (lambda x: nnc.hessian(lambda a, b: a * b, argnums=(0, 1)), r"hessian: argnums \(0, 1\)", "one call for each"),
    (lambda x: nnc.hessian(lambda v: v * v)(x), r"hessian: the function gives float32\[2\]", "sum it"),
    (lambda x: nnc.grad(lambda v: v * v)(x), r"grad: the function gives float32\[2\]", "sum it"),
    (lambda x: nnc.grad(lambda v: (nnc.sum(v), v))(x), "grad: the function gives tuple", "has_aux=True"),
    (lambda x: nnc.grad(nnc.sum, has_aux=True)(x), r"grad: the function gives Tensor, not \(scalar, any", "a pair"),
    (lambda x: nnc.grad(nnc.sum)(x.astype("int32")), r"a derivative by int32\[2\]", "cast with astype"),
    (lambda x: nnc.vmap(lambda a, s: a * s)(x, s=x), "vmap: arrays by name: s", "by position"),
    (lambda x: bool(x > 1) and x, r"bool: bool\[2\] has not exactly one element", "nnc.any"),
])
def test_what_is_refused_says_what_to_write(f: Callable[[nnc.Tensor], Any], said: str, hint: str) -> None:
    with pytest.raises(nnc.Error, match=said) as caught:
        f(nnc.asarray([1.0, 2.0]))
    assert "at: test_gradients.py" in str(caught.value) and hint in str(caught.value).partition("try: ")[2]
