"""Errors of work that fails later, and warnings, name the line of the user's code that asked for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import stacks
from nnc_core.base import line as lines
from nnc_core.base.errors import Error
from nnc_core.base.line import show_line, user_line, users_frame
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin import FLAVOURS, StrictDevice
from nnc_core.device import Buffer, Kernel, Launch, Stream, origin
from nnc_plugins import Manager, hookimpl

ASYNC = next(flavour for flavour in FLAVOURS if flavour.queues)


class FailingDevice(StrictDevice):
    """Compiles kernels that fail when their turn comes."""

    def __init__(self) -> None:
        super().__init__(ASYNC)

    def compile(self, nest: LoopNest) -> Kernel:
        super().compile(nest)
        return FailingKernel(self)


class FailingKernel(Kernel):
    def __init__(self, device: FailingDevice) -> None:
        self.device = device

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        return partial(self.device.run, "failing", stream, self._fail, origin.get())

    def _fail(self) -> None:
        raise RuntimeError("the driver gave up")


def tripled(x: Any) -> Any:
    return nnc.tanh(x)  # the line


LINE = f"test_lines.py:{tripled.__code__.co_firstlineno + 1} in tripled"


def deferred(x: Any) -> Any:
    with nnc.deferred():
        y = tripled(x)
    return y


@pytest.mark.parametrize("run", [tripled, deferred, nnc.jit(tripled)], ids=["eager", "deferred", "compiled"])
def test_work_that_fails_later_names_the_users_line(run: Callable[[Any], Any]) -> None:
    with nnc.use_device(nnc.make_stack(FailingDevice())):
        x = nnc.asarray(np.ones(3, np.float32))
        with pytest.raises(Error, match="the driver gave up") as caught:
            run(x).numpy()
    assert caught.value.line == LINE


def test_transfers_are_work_for_the_users_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    device = StrictDevice(ASYNC)
    upload = StrictDevice.upload

    def watched(self: Any, *arguments: Any) -> Any:
        found.append(show_line(origin.get()))
        return upload(self, *arguments)

    monkeypatch.setattr(StrictDevice, "upload", watched)
    with nnc.use_device(nnc.make_stack(device)):
        nnc.asarray(np.ones(3, np.float32))
    assert found == [f"test_lines.py:{sys._getframe().f_lineno - 1} in "
                     "test_transfers_are_work_for_the_users_line_too"]
    assert origin.get() is None


# ---- code that is not the user's
SOURCE = """
def calls(f):
    return f()
"""


@pytest.fixture
def between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package that is a plugin, with a function that calls what it is given."""
    folder = tmp_path / "between"
    folder.mkdir()
    (folder / "__init__.py").write_text("from between.calling import calls\n")
    (folder / "calling.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(stacks, "_manager", Manager(only=()))
    monkeypatch.setattr(lines, "_inside", list(lines._inside))
    import between as module  # type: ignore[import-not-found]

    module.nnc_devices = hookimpl(_no_devices)
    yield module
    for name in ("between", "between.calling"):
        sys.modules.pop(name, None)
    lines._outside.clear()


def _no_devices() -> list[Any]:
    return []


_no_devices.__name__ = "nnc_devices"


def line_through(module: ModuleType) -> str:
    return show_line(module.calls(user_line))


def test_the_package_of_a_plugin_is_not_the_users_code(between: ModuleType) -> None:
    assert "calling.py" in line_through(between)
    assert between.calls(users_frame) == 1
    nnc.register_plugin(between, "between")
    assert "in line_through" in line_through(between)
    assert between.calls(users_frame) == 2


def test_an_object_is_a_plugin_of_the_users_own_code(between: ModuleType) -> None:
    class Plugin:
        nnc_devices = staticmethod(hookimpl(_no_devices))

    assert nnc.register_plugin(Plugin, "mine").place == ""
    assert "test_lines.py" in show_line(user_line())
