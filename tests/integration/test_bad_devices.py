"""Devices that are missing, lack something or go away: one clear error, nothing lost, other devices as before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import DeviceLostError, DTypeError
from nnc_core.builtin import StrictDevice
from nnc_core.device import Registry
from nnc_core.stacks import Stack, make_stack, stack_for
from tests.builtin.strict_devices import called
from tests.house.test_readme import ROOT

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)


@pytest.mark.skipif(find_spec("pyopencl") is None, reason="PyOpenCL is not installed")
def test_without_a_driver_of_opencl_the_error_says_what_to_do() -> None:
    code = """
import nnc_core as nnc
try:
    nnc.ones(2, device="opencl:0")
except nnc.errors.DeviceError as error:
    print(error)
print(nnc.ones(2, device="strict:0").tolist())
"""
    environment = {**os.environ, "OCL_ICD_VENDORS": os.devnull + "/nowhere",
                   "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), *sys.path)))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "no device 'opencl:0'; there are: " in done.stdout and "`nnc devices` says which plugins" in done.stdout
    assert done.stdout.splitlines()[-1] == "[1.0, 1.0]" and not done.stderr


@pytest.mark.parametrize("make", [
    lambda: nnc.ones(2, dtype="float64"), lambda: nnc.asarray(np.ones(2)), lambda: nnc.ones(2).astype("float64"),
    lambda: nnc.jit(lambda x: x.astype("float64") * 2)(nnc.ones(2)),
], ids=["ones", "asarray", "astype", "compiled"])  # fmt: skip
def test_float64_on_a_device_without_it(make: Callable[[], nnc.Tensor]) -> None:
    id = "strict-nofloat64:0"
    with nnc.use_device(id), pytest.raises(DTypeError) as caught:
        make()
    text = str(caught.value)
    assert "float64" in text and id in text and "test_bad_devices.py" in text and "try: " in text, text
    assert nnc.ones(2, dtype="float64", device="strict:0").tolist() == [1, 1]


class Run:
    """A network that is trained on one device."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        with nnc.use_device(stack):
            nnc.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
            self.minimiser = optim.SGD(self.net.named_parameters(), learning_rate=0.1, momentum=0.9)
            self.x = nnc.asarray(X)
        self.step = optim.make_step(nn.value_and_grad(self.net, lambda x: nnc.mean(self.net(x) ** 2)), self.minimiser)

    def train(self, steps: int) -> None:
        with nnc.use_device(self.stack):
            for _ in range(steps):
                self.step(self.x)

    def weights(self) -> list[np.ndarray]:
        return [parameter.numpy() for parameter in self.net.parameters()]


def test_a_device_that_is_lost_while_it_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other device trains on; the run goes on, from what was saved, on the device opened anew."""
    monkeypatch.setattr("nnc_core.stacks.registry", registry := Registry())
    monkeypatch.setattr("nnc_core.stacks._stacks", {})
    monkeypatch.setattr("nnc_core.stacks._look_for", lambda kind: None)
    registry.add("frail:0", called("frail:0"))
    whole, other, frail = Run(make_stack(StrictDevice())), Run(make_stack(StrictDevice())), Run(stack_for("frail:0"))
    whole.train(6)
    frail.train(3)
    other.train(3)
    weights, state = frail.net.state_dict(), frail.minimiser.state_dict()
    frail.stack.device.close()
    with pytest.raises(DeviceLostError, match=r"nnc\.reopen\('frail:0'\)"):
        frail.train(1)
    other.train(3)
    with nnc.use_device(other.stack), pytest.raises(DeviceLostError, match=r"default generator was(?s:.*)manual_seed"):
        nnc.dropout(other.x, 0.5)
    nnc.reopen("frail:0")
    again = Run(stack_for("frail:0"))
    again.net.load_state_dict(weights)
    again.minimiser.load_state_dict(state)
    again.train(3)
    for run in (other, again):
        for a, b in zip(run.weights(), whole.weights(), strict=True):
            assert a.tobytes() == b.tobytes()
