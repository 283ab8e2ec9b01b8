"""Drivers of two vendors in one process: skipped where one is installed, as `pip install nnc-opencl[intel,pocl]` is not
part of the tests' environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.stacks import stack_for
from nnc_opencl.binaries import identity
from nnc_opencl.device import OpenCLDevice

X = np.linspace(-3, 3, 64, dtype=np.float32)[:, None]
STEPS = 5


@pytest.fixture(scope="module")
def two() -> tuple[OpenCLDevice, OpenCLDevice]:
    """A device of each of two platforms."""
    found: dict[str, OpenCLDevice] = {}
    for spec in nnc.devices():
        if spec.kind == "opencl":
            device = stack_for(spec).device
            assert isinstance(device, OpenCLDevice)
            found.setdefault(device._device.platform.name, device)
    if len(found) < 2:
        pytest.skip(f"OpenCL has drivers of {list(found) or 'nobody'} here; another: pip install 'nnc-opencl[pocl]'")
    first, second, *_ = found.values()
    return first, second


def loss_of(net: nn.Module) -> Callable[[nnc.Tensor, nnc.Tensor], nnc.Tensor]:
    return lambda x, y: nnc.mean((net(x) - y) ** 2)


def trained(*devices: OpenCLDevice) -> list[np.ndarray]:
    """Weights after some steps on each device in turn."""
    nnc.manual_seed(0)
    with nnc.use_device(devices[0].spec.id):
        net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        minimiser = optim.SGD(net.named_parameters(), learning_rate=0.05, momentum=0.9)  # no quotient of small ones
    step = optim.make_step(nn.value_and_grad(net, loss_of(net)), minimiser)
    for device in devices:
        id = device.spec.id
        net.to(id)
        minimiser.to(id)
        with nnc.use_device(id):
            x, y = nnc.asarray(X), nnc.asarray(np.sin(X))
            for _ in range(STEPS):
                step(x, y)
    return [parameter.numpy() for parameter in net.parameters()]


def assert_alike(given: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    for a, b in zip(given, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_network_moves_between_drivers_while_it_is_trained(two: tuple[OpenCLDevice, OpenCLDevice]) -> None:
    first, second = two
    alone = trained(first, first, first)
    assert_alike(trained(first, second, first), alone)
    assert_alike(trained(second, first, second), alone)


def test_each_driver_has_names_and_binaries_of_its_own(two: tuple[OpenCLDevice, OpenCLDevice]) -> None:
    first, second = two
    assert first.spec.id != second.spec.id and identity(first._device) != identity(second._device)
    assert nnc.ones(1, device="opencl:pocl").device.id in (first.spec.id, second.spec.id)


def test_both_work_at_the_same_time(two: tuple[OpenCLDevice, OpenCLDevice]) -> None:
    x, y = (nnc.asarray(X, device=device.spec.id) for device in two)
    for _ in range(20):
        x, y = nnc.tanh(x) * 1.5 - nnc.mean(x), nnc.tanh(y) * 1.5 - nnc.mean(y)
    np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose((x.to(y.device) + y).numpy(), x.numpy() + y.numpy(), rtol=1e-6)
