"""H01-H22: MXNet's tests of hybridized blocks restated: values, gradients and state equal eager ones, to the bit.

Here those of arguments and layers; `test_h_calls` has the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import DeviceError
from tests.devices import another
from tests.semantics.hybrid import (
    HYBRID_MODES,
    Call,
    Named,
    agree,
    arguments,
    eagerly,
    everything,
    runner,
    same_names,
)
from tests.semantics.layers import KEEPING, LAYERS, VIEWS
from tests.semantics.modes import hosts
from tests.semantics.networks import (
    Concatenate,
    Identity,
    PassesNone,
    RunningNorm,
    Scaled,
    Viewed,
    generator,
    small_net,
)
from tests.support import numbers

MODES = HYBRID_MODES
X, OTHER = numbers(4, 3), numbers(4, 3, seed=1)


# ---- arguments
def test_h01_arguments_that_are_none(device: str, mode: str) -> None:
    """Which arguments are None is part of the signature: another structure is traced again, an error stays one."""
    agree(mode, PassesNone, Call((X, OTHER)), Call((X, None)), Call((None, X)), Call((X,)), Call((X, OTHER)))
    net = PassesNone()
    net.hybridize()
    run = runner(mode, net)
    for _ in range(2):
        with pytest.raises(ValueError, match="neither a nor b"):
            run(None, None)
    x = nnc.asarray(X)
    same_names(run(x), run(x, None))
    assert net(x)[1] is None


def test_h02_arguments_that_are_no_tensors(device: str, mode: str) -> None:
    """Numbers and lists of them belong to the signature; the parent refuses them once a block is hybridized."""
    calls = [Call((X, 2.0)), Call((X, 3)), Call((X, [1.0, 2.0])), Call((X, 2.0)), Call((X, -0.0)), Call((X, 0.0))]
    agree(mode, Scaled, *calls)


def test_h02_arguments_on_two_devices(device: str, mode: str) -> None:
    net = small_net()
    net.hybridize()
    run = runner(mode, net)
    x = nnc.asarray(X)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"\.to\(") as refused:
            run(x.to(another(device)))
        assert isinstance(refused.value, DeviceError)
        assert device in str(refused.value) and another(device) in str(refused.value)
    same_names(run(x), eagerly(small_net(), x))


# ---- layers
@pytest.mark.any_mode
@pytest.mark.parametrize("name", LAYERS)
def test_h03_every_layer(device: str, mode: str, name: str) -> None:
    net = LAYERS[name].make().hybridize()
    run = runner(mode, net)
    for training, wanted in zip(TRAINING, eager_calls_of_layer(device, name), strict=True):
        net.train(training)
        same_names(run(*on_device(LAYERS[name].args)), wanted)


TRAINING = True, True, False


@lru_cache(maxsize=256)
def eager_calls_of_layer(device: str, name: str) -> list[Named]:
    """What all modes have to give: calls one after another."""
    net, args = LAYERS[name].make(), on_device(LAYERS[name].args)
    return [eagerly(net.train(training), *args) for training in TRAINING]


def on_device(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments(Call(tuple([tuple(map(nnc.asarray, x)) if isinstance(x, tuple) else x for x in args])))


def test_h03_no_layer_is_left_out() -> None:
    modules = {n for n in nn.__all__ if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), nn.Module)}
    assert modules - {"Module", "ModuleDict", "ModuleList"} <= {name.split(",")[0] for name in LAYERS}


# ---- more layers
def test_h19_squeeze(device: str, mode: str, rng: np.random.Generator) -> None:
    for _ in range(4):
        shape = (*rng.integers(1, 4, 3).tolist(), 1)
        ones = tuple(i for i, d in enumerate(shape) if d == 1)
        host = rng.standard_normal(shape).astype(np.float32)
        agree(mode, lambda axes=ones: nn.Lambda(lambda x: nnc.squeeze(x, axes) * 2), Call((host,)), Call((host[:1],)))


@pytest.mark.parametrize("axis", [-1, 0])
def test_h20_concatenate(device: str, mode: str, axis: int) -> None:
    def make() -> nn.Module:
        g = generator(4)
        inner = Concatenate(Identity(), nn.Tanh(), axis=axis)
        return Concatenate(nn.Linear(3, 3, generator=g), inner, nn.Linear(3, 3, bias=False, generator=g), axis=axis)

    agree(mode, make, Call((X,)), Call((X[:2],)), Call((X,)))


# ---- views
@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("layer", KEEPING.values(), ids=KEEPING.keys())
def test_h22_views_before_layers(device: str, mode: str, layer: Any, views: tuple[Any, ...]) -> None:
    def make() -> nn.Module:
        return nn.Sequential(*[Viewed(view, layer()) for view in views])

    agree(mode, make, Call((numbers(2, 8, 8, 4),)))


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.JitWarning")  # an iterator is there to differ
def test_the_harness_compares_all(device: str) -> None:
    """Gradients by parameters and arguments, and the state, are among what is compared."""
    net = nn.Sequential(RunningNorm(3), nn.Linear(3, 2, generator=generator(1)))
    found = everything(net, *arguments(Call((X,))))
    assert {"result 0", "loss", "by 0.scale", "by 1.weight", "by argument 0.0", "state 0.mean"} <= found.keys()
    assert hosts(found["state 0.mean"])[0].any()
    made = iter(range(100))
    with pytest.raises(AssertionError, match="differs"):
        agree("hybridize", lambda: nn.Lambda(lambda x: x * float(next(made))), Call((X,)))
