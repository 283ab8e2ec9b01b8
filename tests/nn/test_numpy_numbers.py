"""NumPy's numbers are as good as Python's: as sizes of layers, as settings of minimisers, and in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.optim import owl

N, F = np.int64, np.float32
LAYERS: dict[str, tuple[Callable[[Any, Any], nn.Module], tuple[int, ...]]] = {
    "Linear": (lambda n, f: nn.Linear(n(2), n(3)), (5, 2)),
    "Conv2d": (lambda n, f: nn.Conv2d(n(3), n(4), (n(3), 3), strides=n(1)), (1, 5, 5, 3)),
    "MaxPool2d": (lambda n, f: nn.MaxPool2d(n(2)), (1, 4, 4, 1)),
    "BatchNorm": (lambda n, f: nn.BatchNorm(n(3), momentum=f(0.5)), (4, 3)),
    "LayerNorm": (lambda n, f: nn.LayerNorm(n(3), epsilon=f(0.5)), (4, 3)),
    "GroupNorm": (lambda n, f: nn.GroupNorm(n(2), n(4)), (2, 3, 4)),
    "Dropout": (lambda n, f: nn.Dropout(f(0.5)), (2, 3)),
    "LeakyReLU": (lambda n, f: nn.LeakyReLU(f(0.25)), (2, 3)),
    "Reshape": (lambda n, f: nn.Reshape((n(3), n(2))), (2, 6)),
    "LSTM": (lambda n, f: nn.LSTM(n(3), n(4), layers=n(2)), (2, 5, 3)),
}  # fmt: skip
MINIMISERS: dict[str, Callable[[Any, Any, dict[str, nn.Parameter]], optim.Minimiser]] = {
    "SGD": lambda n, f, p: optim.SGD(p, f(0.25), momentum=f(0.5)),
    "Adam": lambda n, f, p: optim.Adam(p, optim.schedules.Cosine(f(0.25), n(8)), epsilon=f(0.5)),
    "steps": lambda n, f, p: optim.SGD(p, optim.schedules.MultiStep(f(0.25), [n(1), n(2)], f(0.5))),
    "groups": lambda n, f, p: optim.SGD([optim.Group(p, learning_rate=f(0.5))], f(0.25)),
    "clipping": lambda n, f, p: optim.SGD(p, f(0.25), clipping=optim.clipping.GlobalNorm(f(0.5))),
}  # fmt: skip


def results(made: nn.Module, shape: tuple[int, ...]) -> list[np.ndarray]:
    x = nnc.asarray(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    with nnc.evaluating():  # what is drawn is drawn anew
        found = made(x)
    return [y.numpy() for y in (found if isinstance(found, tuple) else (found,)) if isinstance(y, nnc.Tensor)]


@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_their_files(name: str, tmp_path: Path) -> None:
    make, shape = LAYERS[name]
    nnc.manual_seed(7)
    python = make(int, float)
    nnc.manual_seed(7)
    numpy = make(N, F)
    assert repr(numpy) == repr(python)
    nnc.io.save_module(numpy, tmp_path / "net")
    for again in (numpy, nnc.io.load_module(tmp_path / "net")):
        for found, wanted in zip(results(again, shape), results(python, shape), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("name", MINIMISERS)
def test_minimisers(name: str, dtype: str) -> None:
    """Weights keep their dtype: a NumPy float32 would widen halves beside an operator."""
    found = []
    for n, f in ((int, float), (N, F)):
        weight = nn.Parameter(np.array([1.0, -2.0], dtype))
        minimiser = MINIMISERS[name](n, f, {"w": weight})
        for _ in range(3):
            minimiser.update({"w": weight.read() * 0.5})
        assert weight.spec.dtype == dtype
        found.append((repr(minimiser), weight.read().tolist()))
    assert found[0] == found[1]


def test_configurations() -> None:
    params = owl.Params(epochs=N(2), batch=owl.batch.Mini(N(4)), learning_rate=owl.learning_rate.Const(F(0.5)))
    assert params == owl.Params(epochs=2, batch=owl.batch.Mini(4), learning_rate=owl.learning_rate.Const(0.5))
    assert type(params.epochs) is int
