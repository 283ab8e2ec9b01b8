"""With no device plugin installed core computes on strict:0, and says once what to install."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import warnings
import nnc_core as nnc

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = nnc.asarray([1.0, 2.0])
    y = nnc.tanh(x) + nnc.ones(2)
    loss = nnc.grad(lambda v: nnc.sum(v * v))(x)
    assert y.device.id == loss.device.id == "strict:0", y.device.id
    assert loss.tolist() == [2.0, 4.0]
    assert [d.id for d in nnc.devices()] == ["strict:0"]
    assert {"null:0", "strict-async:0"} < {d.id for d in nnc.devices(all=True)}
said = [str(w.message) for w in caught]
assert len(said) == 1 and "pip install nnc-cpu" in said[0], said
assert caught[0].filename == "<string>", caught[0].filename
"""


def test_core_alone() -> None:
    environment = os.environ | {"NNC_PLUGINS_BLOCK": "cpu,opencl,cuda"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
