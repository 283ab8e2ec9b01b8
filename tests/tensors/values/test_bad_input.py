"""One clear error for each kind of bad input, and the next call works.

Every error is the builtin that a user would catch, and names the operator, the operands and the user's line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails

BAD: dict[str, tuple[type[BaseException], str, tuple[str, ...], Callable[[Any], Any]]] = {
    "shapes": (ValueError, "add", ("float32[2,3]", "float32[2]"), lambda x: x + x[:, 0]),
    "shapes of a product": (ValueError, "matmul", ("float32[2,3]",), lambda x: x @ x),
    "a scalar's product": (ValueError, "matmul", ("scalar",), lambda x: nnc.matmul(x, 2.0)),
    "axis": (ValueError, "sum", ("axis 2", "2 dimensions"), lambda x: nnc.sum(x, axis=2)),
    "negative axis": (IndexError, "softmax", ("-3",), lambda x: nnc.softmax(x, axis=-3)),
    "axis twice": (ValueError, "max", ("axis",), lambda x: nnc.max(x, axis=(0, 0))),
    "axis of a concatenation": (ValueError, "concat", ("axis 5",), lambda x: nnc.concat([x, x], axis=5)),
    "permutation": (ValueError, "permute", (), lambda x: nnc.permute_dims(x, (0, 0))),
    "shape": (ValueError, "reshape", ("(4, 2)", "float32[2,3]"), lambda x: nnc.reshape(x, (4, 2))),
    "shape with a rest": (ValueError, "reshape", ("(4, -1)",), lambda x: nnc.reshape(x, (4, -1))),
    "shape with two unknowns": (ValueError, "reshape", ("more than one -1",), lambda x: nnc.reshape(x, (-1, -1))),
    "broadcast": (ValueError, "broadcast_to", ("float32[2,3]",), lambda x: nnc.broadcast_to(x, (2, 4))),
    "squeeze": (ValueError, "squeeze", ("length 2",), lambda x: nnc.squeeze(x, 0)),
    "concatenation": (ValueError, "concat", ("float32[3]",), lambda x: nnc.concat([x, x[0]])),
    "nothing to join": (TypeError, "stack", ("nothing",), lambda x: nnc.stack([])),
    "index dtype": (TypeError, "take", ("float32",), lambda x: nnc.take(x, x[0], axis=0)),
    "logic": (TypeError, "bitwise_and", ("float32",), lambda x: x & x),
    "truth of many": (ValueError, "", ("float32[2,3]",), lambda x: bool(x)),
    "an operand": (TypeError, "", ("str", "nnc.asarray"), lambda x: nnc.add(x, "a")),
    "an object": (TypeError, "", ("object",), lambda x: nnc.sum(object())),
    "window": (ValueError, "max_pool2d", ("float32[2,3]",), lambda x: nnc.max_pool2d(x, 2)),
    "layout": (ValueError, "conv2d", ("'HWCN'",), lambda x: nnc.conv2d(x, x, layout="HWCN")),
    "padding": (ValueError, "conv2d", ("'MIRROR'",),
                lambda x: nnc.conv2d(nnc.ones((1, 4, 4, 1)), nnc.ones((2, 2, 1, 1)), padding="MIRROR")),
    "channels": (ValueError, "conv2d", ("float32[2,2,2,1]",),
                 lambda x: nnc.conv2d(nnc.ones((1, 4, 4, 1)), nnc.ones((2, 2, 2, 1)))),
    "strides": (ValueError, "conv2d", ("0",),
                lambda x: nnc.conv2d(nnc.ones((1, 4, 4, 1)), nnc.ones((2, 2, 1, 1)), strides=0)),
    "groups": (ValueError, "conv2d", ("2",),
               lambda x: nnc.conv2d(nnc.ones((1, 4, 4, 3)), nnc.ones((2, 2, 1, 4)), groups=2)),
    "a window larger than the image": (ValueError, "avg_pool2d", ("float32[1,2,2,1]",),
                                       lambda x: nnc.avg_pool2d(nnc.ones((1, 2, 2, 1)), 3)),
    "labels": (ValueError, "cross_entropy", ("float32[3]",), lambda x: nnc.cross_entropy(x, x[0])),
    "labels' shape": (ValueError, "cross_entropy", ("int64[3]",), lambda x: nnc.cross_entropy(x, [0, 1, 2])),
    "reduction": (ValueError, "cross_entropy", ("'median'",),
                  lambda x: nnc.cross_entropy(x, [0, 1], reduction="median")),
    "probability": (ValueError, "bernoulli", ("1.5",), lambda x: nnc.Generator(0).bernoulli(1.5, (2,))),
    "a dtype of uniforms": (TypeError, "uniform", ("int32",), lambda x: nnc.Generator(0).uniform((2,), dtype="int32")),
    "extremum of nothing": (ValueError, "max", ("float32[0,3]",), lambda x: nnc.max(x[:0], axis=0)),
    "argmax of nothing": (ValueError, "argmax", (), lambda x: nnc.argmax(x[:0])),
    "depth": (ValueError, "one_hot", ("-1",), lambda x: nnc.one_hot([0], -1)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_eager(x: nnc.Tensor, name: str) -> None:
    kind, op, said, f = BAD[name]
    with fails(kind, *said, operator=op or None, line=bool(op)):
        f(x)


@pytest.mark.parametrize("name", BAD)
def test_deferred_fails_where_it_is_recorded(x: nnc.Tensor, name: str) -> None:
    kind, op, said, f = BAD[name]
    with fails(kind, *said, operator=op or None, line=bool(op)), nnc.deferred():
        f(x)


@pytest.mark.parametrize("name", BAD)
def test_compiled_fails_where_it_is_traced(x: nnc.Tensor, name: str) -> None:
    kind, op, said, f = BAD[name]
    if name == "truth of many":
        kind, said = TypeError, ("symbol",)
    with fails(kind, *said, operator=op or None, line=bool(op)):
        nnc.jit(f)(x)


def test_unknown_arguments_are_named(x: nnc.Tensor) -> None:
    for f, name in ((lambda: nnc.sum(x, axs=0), "axs"), (lambda: nnc.softmax(x, dimension=1), "dimension"),
                    (lambda: nnc.conv2d(x, x, steps=2), "steps")):
        with fails(TypeError, f"no argument {name!r}"):
            f()
    assert nnc.sum(x).item() == 15


def test_devices_do_not_mix(x: nnc.Tensor, device: str) -> None:
    other = "strict-align128:0"
    y = x.to(other)
    for f in (lambda: x + y, lambda: nnc.concat([x, y]), lambda: nnc.where(x > 0, x, y), lambda: x.at[0].set(y[0]),
              lambda: x @ y.T):
        with fails(ValueError, device, other, ".to("):
            f()
        with nnc.deferred(), fails(ValueError, device, other):
            f()
    with pytest.raises(nnc.Error):
        x[0] = y[0]
    assert (x + y.to(device)).tolist() == (2 * x.numpy()).tolist()


def test_an_allocation_beyond_the_memory(device: str) -> None:
    """Nothing that was there is lost."""
    kept = nnc.asarray([1.0, 2.0])
    with fails(MemoryError, device, "test_bad_input.py"):
        nnc.ones((1 << 29, 1 << 29))
    for shape in ((1 << 40, 1 << 40), (1 << 70,)):  # more than NumPy can count
        with fails(MemoryError, device):
            nnc.full(shape, 1.5)
    with fails(MemoryError, line=False):
        nnc.broadcast_to(kept, (1 << 40, 2)) + 1
    with fails(MemoryError, device):
        nnc.sum(nnc.broadcast_to(kept, (1 << 70, 2)))
    assert kept.tolist() == [1.0, 2.0]


def test_views_and_results_beyond_addresses_are_memory_errors_where_numpy_makes_none_of_them() -> None:
    for function in (lambda: nnc.broadcast_to(nnc.ones(1), (1 << 70,)), lambda: nnc.zeros((3, 1 << 66), dtype="int8")):
        with nnc.use_device("strict:0"), fails(MemoryError, "strict:0", "more than any memory holds"):
            function()


def test_a_deferred_allocation_fails_when_it_is_computed_and_names_its_line(device: str) -> None:
    with nnc.deferred():
        y = nnc.ones((1 << 29, 1 << 29)) + 1
        z = nnc.ones(2) + 1
    assert y.shape == (1 << 29, 1 << 29)
    with fails(MemoryError, "test_bad_input.py"):
        y.realize()
    assert z.tolist() == [2.0, 2.0]


def test_a_compiled_allocation_beyond_the_memory(device: str) -> None:
    f = nnc.jit(lambda x, n: nnc.sum(nnc.tanh(nnc.broadcast_to(x, (n, 1 << 20))) + 1, axis=0)[:3])
    x = nnc.zeros(1 << 20)
    with nnc.config.using(fusion=False):  # as one command it would take no memory, but years
        with fails(MemoryError, line=False):
            f(x, 1 << 38)
        assert f(x, 2).tolist() == [2.0, 2.0, 2.0]


def test_small_memory_is_enough_when_it_is_freed() -> None:
    """A hundred arrays of a megabyte on a device with 64 of them."""
    with nnc.use_device("strict-small:0"):
        x = nnc.ones((1 << 17,))
        total = nnc.asarray(0.0)
        for _ in range(100):
            total = total + nnc.sum(x + 1)
        assert total.item() == 100 * 2 * (1 << 17)
        held = []
        with pytest.raises(MemoryError):
            for _ in range(200):
                held.append(x + 1)
        held.clear()
        assert nnc.sum(x).item() == 1 << 17


def test_numbers_that_are_no_python_numbers(x: nnc.Tensor) -> None:
    from decimal import Decimal

    for bad in (Decimal(1), {}, b"1"):
        with pytest.raises(TypeError):
            x + bad
        with pytest.raises(TypeError):
            nnc.maximum(x, bad)
    np.testing.assert_array_equal((x + 0).numpy(), x.numpy())
