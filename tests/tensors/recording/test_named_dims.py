"""Exports with named dimensions: right for every size, or refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.recording.compilation import KEPT
from tests.tensors.faults import fails

RECORDED = 4
HOST = np.linspace(-1, 1, 3 * RECORDED, dtype=np.float32).reshape(RECORDED, 3)
Function = Callable[[nnc.Tensor], nnc.Tensor]


def images(count: int) -> np.ndarray:
    return np.arange(count * 36, dtype=np.float32).reshape(count, 6, 6, 1) / 36


FOLLOWING: dict[str, Function] = {
    "elementwise": lambda x: nnc.tanh(x) * 2 - x,
    "matrix product": lambda x: x @ x.T,
    "sum over the named axis": lambda x: nnc.sum(x, axis=0),
    "mean over the named axis": lambda x: nnc.mean(x, axis=0, keepdims=True) - x,
    "softmax along the named axis": lambda x: nnc.softmax(x, axis=0),
    "transposed": lambda x: x.T + 1,
    "concatenated with itself": lambda x: nnc.concat([x, x * 2]),
    "padded along another axis": lambda x: nnc.pad(x, ((0, 0), (1, 2))),
    "flipped": lambda x: nnc.flip(x, axis=0),
    "columns taken": lambda x: nnc.take(x, nnc.asarray(np.array([2, 0])), axis=1),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_what_follows_the_size_is_right_for_every_size(device: str, name: str) -> None:
    f, x = FOLLOWING[name], nnc.asarray(HOST)
    with nnc.deferred():
        y = f(x)
    graph = nnc.export({"x": x}, {"y": y}, named_dims={"x": ("batch", None)}, capture="constant")
    assert str(graph.inputs["x"].spec) == "float32[batch,3]"
    compiled = graph.compile(device)
    for count in (RECORDED, 1, 7, RECORDED):
        host = np.linspace(-2, 3, 3 * count, dtype=np.float32).reshape(count, 3)
        found, wanted = compiled(x=host)["y"].numpy(), f(nnc.asarray(host)).numpy()
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


def test_a_network_for_any_batch(device: str) -> None:
    kernel = nnc.asarray(np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 3, 1, 2))
    x = nnc.asarray(images(2))

    def f(x: nnc.Tensor) -> nnc.Tensor:
        hidden = nnc.relu(nnc.conv2d(x, kernel, padding="SAME"))
        return nnc.mean(nnc.max_pool2d(hidden, 2), axis=(1, 2))

    with nnc.deferred():
        y = f(x)
    graph = nnc.export({"x": x, "kernel": kernel}, {"y": y}, named_dims={"x": ("batch", 6, 6, 1)})
    for count in (1, 5):
        found = graph.compile(device)(x=images(count), kernel=kernel.numpy())["y"].numpy()
        np.testing.assert_allclose(found, f(nnc.asarray(images(count))).numpy(), rtol=1e-5)


def test_what_needs_sizes_says_how_they_are_given() -> None:
    with nnc.deferred():
        x = nnc.var_arr("x", ("n", 3))
        run = nnc.export({"x": x}, {"y": x * 2}).compile()
    for name in ("memory_plan", "explain", "profile"):
        with pytest.raises(AttributeError, match=rf"(?s)'{name}'.*try: run\.specialised\(.*\)\.{name}"):
            getattr(run, name)
        assert hasattr(run.specialised({"n": 3}), name)
    with pytest.raises(AttributeError) as caught:
        run.nobody  # noqa: B018
    assert "try:" not in str(caught.value)


def test_so_many_sizes_stay_compiled_and_the_oldest_goes() -> None:
    x = nnc.var_arr("x", (nnc.Dim("n"), 2))
    run = nnc.export({"x": x}, {"y": nnc.sum(x, axis=0)}).compile("cpu:0")
    first = run.specialised({"n": 1})
    for n in range(1, KEPT + 3):
        assert run(x=np.ones((n, 2), np.float32))["y"].tolist() == [n, n]
    assert len(run.compiled) == KEPT and first not in run.compiled.values()
    latest = run.specialised({"n": KEPT + 2})
    assert latest is run.specialised({"n": KEPT + 2}) and latest.memory_plan.commands == 1


BAKED: dict[str, tuple[Function, str]] = {
    "a shape": (lambda x: nnc.reshape(x, (RECORDED * 3,)), "shape=(12,)"),
    "a size that was read": (lambda x: nnc.broadcast_to(nnc.sum(x, axis=0), x.shape) + x, "(4, 3)"),
    "the end of a slice": (lambda x: x[1:], "stop=(4, 3)"),
    "the end of an untouched axis": (lambda x: x[:, 1:], "stop=(4, 3)"),
    "the last row": (lambda x: x[-1], "start=(3, 0)"),
    "a replaced row": (lambda x: x.at[1].set(0.0), "start=(1, 0)"),
    "padding of the axis": (lambda x: nnc.pad(x, ((1, 0), (0, 0))), "low=(1, 0)"),
    "a range as long as the axis": (lambda x: x + nnc.arange(x.shape[0], dtype="float32")[:, None], "float32[4]"),
    "as many ones": (lambda x: x.sum() / nnc.ones_like(x).sum(), "float32[4,3]"),
    "rows that a range picks": (lambda x: nnc.unique_consecutive(x, axis=0), "int64[4]"),
    "an array as long as the axis": (lambda x: x * nnc.asarray(HOST), "(4, 3)"),
    "a first row": (lambda x: x[:1] + x, "stop=(1, 3)"),
}


@pytest.mark.parametrize("name", BAKED)
def test_a_recorded_size_is_refused(name: str) -> None:
    """The parent's defect "baked shape": another size is silently computed as if it were the recorded one."""
    f, said = BAKED[name]
    x = nnc.asarray(HOST)
    with nnc.deferred():
        y = f(x)
    assert nnc.export({"x": x}, {"y": y}, capture="constant").list_inputs() == ["x"], "right for this size"
    with fails(ValueError, "batch", said, "nnc.var_arr"):
        nnc.export({"x": x}, {"y": y}, capture="constant", named_dims={"x": ("batch", None)})


def test_padding_that_depends_on_the_size_of_images_is_refused() -> None:
    x, kernel = nnc.asarray(images(2)), nnc.asarray(np.ones((3, 3, 1, 1), np.float32))
    with nnc.deferred():
        y = nnc.conv2d(x, kernel, strides=2, padding="SAME")
        plain = nnc.conv2d(x, kernel, strides=2)
    ends = {"x": x, "kernel": kernel}
    with fails(ValueError, "padding=", "height=6", operator="conv"):
        nnc.export(ends, {"y": y}, named_dims={"x": (None, "height", None, None)})
    graph = nnc.export(ends, {"y": plain}, named_dims={"x": (None, "height", None, None)})
    assert graph.outputs["y"].shape[2] == 2 and not isinstance(graph.outputs["y"].shape[1], int)


def test_another_size_that_cannot_be_is_refused() -> None:
    """Specs agree for names, and only numbers show that they never can."""
    x, y = nnc.asarray(np.ones((4, 3), np.float32)), nnc.asarray(np.ones((4, 3), np.float32))
    with nnc.deferred():
        z = x + y
    with fails(ValueError, "shapes", "do not broadcast", operator="add"):
        nnc.export({"x": x, "y": y}, {"z": z}, named_dims={"x": ("n", None), "y": ("m", None)})
    with fails(ValueError, "do not broadcast", operator="add"):
        nnc.export({"x": x, "y": y}, {"z": z}, named_dims={"x": ("n", None)})
    both = nnc.export({"x": x, "y": y}, {"z": z}, named_dims={"x": ("n", None), "y": ("n", None)})
    with fails(ValueError, "float32[n,3]", line=False):
        both.compile()(x=np.ones((2, 3), np.float32), y=np.ones((5, 3), np.float32))


def test_names_are_checked_against_what_was_recorded() -> None:
    x, y = nnc.asarray(np.ones((4, 3), np.float32)), nnc.asarray(np.ones((5,), np.float32))
    with nnc.deferred():
        z = nnc.sum(x) + nnc.sum(y)
    ends = {"x": x, "y": y}
    with fails(ValueError, "dimension 'n' is 4 in input 'x' and 5 in input 'y'", line=False):
        nnc.export(ends, {"z": z}, named_dims={"x": ("n", None), "y": ("n",)})
    with fails(ValueError, "'x'", "float32[4,3]", "one entry for each axis", line=False):
        nnc.export(ends, {"z": z}, named_dims={"x": ("n",)})
    for given in (5, "ab"):
        with fails(ValueError, f"named_dims of 'x' are {given!r}", "one entry for each axis", line=False):
            nnc.export(ends, {"z": z}, named_dims={"x": given})  # type: ignore[dict-item]
    with fails(ValueError, "'x'", "7", "has 4", line=False):
        nnc.export(ends, {"z": z}, named_dims={"x": (7, None)})
    with fails(ValueError, "'w'", "no input", "inputs: x, y", line=False):
        nnc.export(ends, {"z": z}, named_dims={"w": ("n",)})
    symbol = nnc.var_arr("s", (nnc.Dim("n"), 3))
    with fails(ValueError, "named dimensions already", line=False):
        nnc.export({"s": symbol}, {"z": symbol + 1}, named_dims={"s": ("m", None)})


def test_dimensions_that_belong_together(device: str) -> None:
    """A dimension may be an expression in another one's name."""
    x, y = nnc.asarray(np.arange(2, dtype=np.float32)), nnc.asarray(np.ones(4, np.float32))
    with nnc.deferred():
        z = nnc.concat([x, x]) * y
    n = nnc.Dim("n")
    graph = nnc.export({"x": x, "y": y}, {"z": z}, named_dims={"x": (n,), "y": (n * 2,)})
    found = graph.compile(device)(x=np.arange(3, dtype=np.float32), y=np.full(6, 2, np.float32))["z"]
    assert found.tolist() == [0, 2, 4, 0, 2, 4]
    with fails(ValueError, "dimension 2*m+1", "is 4, with", line=False):
        nnc.export({"x": x, "y": y}, {"z": z}, named_dims={"x": (nnc.Dim("m"),), "y": (nnc.Dim("m") * 2 + 1,)})
    with fails(ValueError, "'m'", "no axis of its own", line=False):
        nnc.export({"x": x, "y": y}, {"z": z}, named_dims={"y": (nnc.Dim("m") * 2,)})


def test_a_placeholder_takes_names_of_dimensions() -> None:
    x = nnc.var_arr("x", shape=("n", 3))
    y = nnc.sum(x * 2, axis=0)
    nnc.assign(x, np.ones((5, 3)))
    nnc.eval_arr([y])
    assert nnc.unpack_arr(y).tolist() == [10, 10, 10]
    with pytest.raises(nnc.Error, match="NoneType is no dimension"):
        nnc.var_arr("x", shape=(None, 3))  # type: ignore[list-item]
