"""Calls of the driver by ctypes: what a driver would be given, and errors."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from nnc_cuda import libcuda
from nnc_cuda.driver import CudaError


def use(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    monkeypatch.setattr(libcuda, "library", lambda: SimpleNamespace(**functions))


@pytest.mark.parametrize(("handles", "expected"), [((5,), 5), ((5, 6), 0), ((), 0)])
def test_the_node_that_was_captured_last(monkeypatch: pytest.MonkeyPatch, handles: tuple[int, ...],
                                         expected: int) -> None:
    nodes = (ctypes.c_void_p * 2)(*handles)

    def info(stream: Any, state: Any, number: Any, graph: Any, found: Any, count: Any) -> int:
        assert stream.value == 9
        count._obj.value = len(handles)
        ctypes.memmove(ctypes.addressof(found._obj), ctypes.byref(ctypes.c_void_p(ctypes.addressof(nodes))), 8)
        return 0

    use(monkeypatch, cuStreamGetCaptureInfo_v2=info)
    assert libcuda.last_node(9) == expected


def test_old_drivers_tell_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    assert libcuda.last_node(9) == 0 and not libcuda.wait_for_word(9, 64)


@pytest.mark.parametrize("name", ["cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2"])
def test_arguments_of_a_kernel_in_a_graph(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The driver's structure, as it lies in memory."""
    seen: list[Any] = []

    def set_params(graph: Any, node: Any, made: Any) -> int:
        whole = bytes(made._obj)
        words = [int.from_bytes(whole[n : n + 4], "little") for n in range(8, 36, 4)]
        seen.extend([graph.value, node.value, int.from_bytes(whole[:8], "little"), words,
                     int.from_bytes(whole[40:48], "little"), any(whole[48:]), len(whole)])
        return 0

    use(monkeypatch, **{name: set_params})
    libcuda.set_arguments(1, 2, 3, 400, 256, 5)
    assert seen == [1, 2, 3, [400, 1, 1, 256, 1, 1, 0], 5, False, 72]


def test_what_the_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(status: int, text: Any) -> int:
        text._obj.value = b"invalid argument"
        return 0

    use(monkeypatch, cuGraphExecKernelNodeSetParams_v2=lambda *_: 1, cuGetErrorString=name)
    with pytest.raises(CudaError, match="cuGraphExecKernelNodeSetParams: invalid argument"):
        libcuda.set_arguments(1, 2, 3, 400, 256, 5)
