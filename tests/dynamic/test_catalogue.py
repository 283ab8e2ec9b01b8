"""Deferred computation, case by case: what every way of running must give, which is what eager gives, to the bit.

The cases follow those of the deferred-compute mode of MXNet 2, restated; numbers are theirs in our catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import nnc_core as nnc

Computation = Callable[..., Sequence[nnc.Tensor]]


def _count() -> nnc.Tensor:
    return nnc.arange(10, dtype=nnc.float32)


def _plus_range(a: nnc.Tensor) -> list[nnc.Tensor]:
    return [a + nnc.arange(a.shape[0], dtype=nnc.float32) - 1]


def _reshapes(a: nnc.Tensor) -> list[nnc.Tensor]:
    b, c = nnc.reshape(a, (5, 2)), nnc.reshape(a, (2, 5))
    return [nnc.reshape(b, (-1,)), b + nnc.reshape(c, (5, -1)), nnc.sum(c, axis=1) / 2]


def _slices(a: nnc.Tensor) -> list[nnc.Tensor]:
    b = a[:5]
    return [nnc.concat([b, b]) + a]


def _first_half(a: nnc.Tensor) -> list[nnc.Tensor]:
    halves = [a[:5], a[5:] * 2]
    return halves[:1]


def _to_other_and_back(a: nnc.Tensor) -> list[nnc.Tensor]:
    here = a.device.id
    return [(a.to("strict:0") - 1).to(here)]


def _cast(a: nnc.Tensor) -> list[nnc.Tensor]:
    return [a.astype(nnc.int32) + nnc.zeros_like(a, dtype=nnc.int32)]


CASES: dict[str, Computation] = {
    "C06 one output": _plus_range,
    "C07 reshapes": _reshapes,
    "C08 slices": _slices,
    "C09 unused outputs": _first_half,
    "C15 devices": _to_other_and_back,
    "C16 casts": _cast,
    "C18 integer index": lambda a: [a[1] + 1],
    "C19 mixed index": lambda a: [nnc.reshape(a, (5, 2))[:2, 1] + 1],
    "C20 tuple index": lambda a: [nnc.reshape(a, (5, 2))[(1, 1)] + 1],
    "C17 size by data": lambda a: [nnc.flatnonzero(a)],
    "C21 mask": lambda a: [nnc.reshape(a[a > 5], (2, 2))],
    "C22 list index": lambda a: [a[[1, 2, 3]]],
    "C23 array index": lambda a: [a[np.array([1, -2, 3])] * 2],
    "C28 mask and indices": lambda a: [a[a > 2] * 2, nnc.flatnonzero(a - 1)],
    "C29 sum of a mask": lambda a: [nnc.sum(a[a > 2]) + 1],
}
SOURCELESS: dict[str, Callable[[], Sequence[nnc.Tensor]]] = {
    "C01 one output": lambda: _plus_range(_count()),
    "C02 reshapes": lambda: _reshapes(_count()),
    "C03 slices": lambda: _slices(_count()),
    "C04 unused outputs": lambda: _first_half(_count()),
    "C05 attributes differ": lambda: [nnc.eye(4, k=1), nnc.eye(4, k=-1), nnc.eye(4, k=1) + nnc.eye(4, k=-1)],
    "C14 devices": lambda: _to_other_and_back(_count()),
}


def _same(found: Sequence[nnc.Tensor | np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    for a, b in zip(found, wanted, strict=True):
        host = a if isinstance(a, np.ndarray) else a.numpy()
        assert host.dtype == b.dtype and host.shape == b.shape and host.tobytes() == b.tobytes()


def _recorded(f: Computation, *args: nnc.Tensor) -> Sequence[nnc.Tensor]:
    with nnc.deferred():
        return f(*args)


def _exported(ys: Sequence[nnc.Tensor], inputs: dict[str, nnc.Tensor], device: str) -> list[np.ndarray]:
    graph = nnc.export(inputs, {f"y{k}": y for k, y in enumerate(ys)}, capture="constant")
    assert graph.list_inputs() == list(inputs)
    found = graph.compile(device)(**inputs)
    return [found[f"y{k}"].numpy() for k in range(len(ys))]


MODES = ("deferred", "used eagerly", "exported", "all on the same arrays", "jit")


def _check(mode: str, f: Computation, device: str, args: Sequence[nnc.Tensor]) -> None:
    wanted = [y.numpy() for y in f(*args)]
    inputs = {f"x{k}": a for k, a in enumerate(args)}
    if mode == "jit":
        return _same(nnc.jit(lambda *xs: list(f(*xs)))(*args), wanted)
    ys = _recorded(f, *args)
    assert all(y.is_deferred for y in ys)
    if mode in ("exported", "all on the same arrays"):
        _same(_exported(ys, inputs, device), wanted)
    if mode in ("used eagerly", "all on the same arrays"):
        _same([y + 0 for y in ys], wanted)
    if mode in ("deferred", "all on the same arrays"):
        _same(ys, wanted)
    if mode == "all on the same arrays":  # computing has not destroyed the history
        _same(_exported(ys, inputs, device), wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_with_an_input(device: str, name: str, mode: str) -> None:
    _check(mode, CASES[name], device, args=[_count()])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SOURCELESS)
def test_without_inputs(device: str, name: str, mode: str) -> None:
    _check(mode, SOURCELESS[name], device, args=[])


def test_c10_in_place_on_a_lazy_array_is_an_error_that_changes_nothing(device: str) -> None:
    with nnc.deferred():
        a = _count()
        with pytest.raises(NotImplementedError, match=r"\.at\[key\]\.set"):
            a[:5] = 0
        b = a + 1
    np.testing.assert_array_equal(b.numpy(), np.arange(10) + 1)


def test_c11_an_input_as_an_output(device: str) -> None:
    a = _count()
    with nnc.deferred():
        b = a + 1
    found = nnc.export({"a": a}, {"a": a, "b": b}).compile(device)(a=a)
    _same([found["a"], found["b"]], [a.numpy(), a.numpy() + 1])


def test_c12_export_is_pure(device: str) -> None:
    a = _count()
    with nnc.deferred():
        b = a + 1
        c = a + 2
    assert [nnc.export({"a": a}, {"y": y}).list_inputs() for y in (b, c)] == [["a"], ["a"]]


def test_c13_two_names_for_one_tensor(device: str) -> None:
    a = _count()
    with nnc.deferred():
        b = a + 1
    with pytest.raises(ValueError, match="same tensor"):
        nnc.export({"a": a, "again": a}, {"b": b})


def _widened(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.concat([x, nnc.pad(x[:, 1:], ((0, 0), (0, 1)))])


def test_c30_an_open_slice_bakes_no_size(device: str) -> None:
    f = nnc.jit(_widened)
    x = nnc.var_arr("x", (8, nnc.Dim("n")))
    graph = nnc.export({"x": x}, {"y": _widened(x)}).compile(device)
    for columns in (16, 8, 16):
        host = np.arange(8 * columns, dtype=np.float32).reshape(8, columns)
        wanted = np.concatenate([host, np.pad(host[:, 1:], ((0, 0), (0, 1)))])
        _same([f(nnc.asarray(host)), graph(x=host)["y"]], [wanted, wanted])
    assert f.traces == 2


def test_c31_dimensions_of_no_length(device: str) -> None:
    f = nnc.jit(lambda x: x[0])
    for length in (0, 2):
        host = np.zeros((2, 2, 4, length, 128), np.float32)
        assert f(nnc.asarray(host)).shape == (2, 4, length, 128) == nnc.asarray(host)[0].shape
