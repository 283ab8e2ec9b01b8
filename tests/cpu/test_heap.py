"""What NumPy's arrays leave behind does not stay beside the memory of a device."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nnc_cpu import heap

HOLES = """
import numpy as np
from nnc_cpu import heap
from nnc_cpu.device import CpuDevice
from tests.memory import resident

MIB = 1 << 20
device = CpuDevice(machine_code=False)
np.ones(30 * MIB, np.uint8)  # from now on the C library puts smaller arrays into its heap
arrays = [np.ones(MIB, np.uint8) for _ in range(96)]
arrays = arrays[::2]
before = resident()
blocks = [device.reserve(2 * MIB) for _ in range(heap.STEP // (2 * MIB))]
assert len(blocks) == 8 and all(x.all() for x in arrays)
print((before - resident()) / MIB)
"""


@pytest.mark.skipif(heap._trimmer() is None, reason="the C library has no malloc_trim")
def test_holes_between_arrays_are_given_back_before_more_is_reserved() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert float(done.stdout) > 30, "48 MiB lie between arrays that stay"


def test_small_blocks_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    given_back: list[int] = []
    monkeypatch.setattr(heap, "give_back", lambda: given_back.append(1))
    monkeypatch.setattr(heap, "_reserved", 0)
    for _ in range(1000):
        heap.reserving(heap.LARGE - 1)
    assert not given_back
    for _ in range(2 * heap.STEP // heap.LARGE):
        heap.reserving(heap.LARGE)
    assert given_back == [1, 1]
