"""Asynchronous work on OpenCL is remembered with the line of the user's code that asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.line import show_line

if TYPE_CHECKING:
    from nnc_opencl.device import OpenCLDevice


def sums(x: Any) -> Any:
    return x + x  # the line


LINE = f"test_lines.py:{sums.__code__.co_firstlineno + 1} in sums"


@pytest.mark.parametrize("run", [sums, nnc.jit(sums)], ids=["eager", "compiled"])
def test_commands_are_remembered_with_the_users_line(device: OpenCLDevice, run: Any,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    from nnc_opencl.stream import OpenCLStream

    told: dict[str, set[str]] = {}
    remember = OpenCLStream.remember

    def watched(self: Any, event: Any, asked: Any) -> None:
        told.setdefault(asked.label, set()).add(show_line(asked.line))
        remember(self, event, asked)

    monkeypatch.setattr(OpenCLStream, "remember", watched)
    with nnc.use_device(nnc.make_stack(device)):
        assert run(nnc.asarray(np.ones(3, np.float32))).tolist() == [2, 2, 2]
    kernels = {line for label, found in told.items() if "add" in label for line in found}
    assert kernels == {LINE}
    assert all("test_lines.py" in line for found in told.values() for line in found)
