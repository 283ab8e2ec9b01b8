"""Arrays on their way from one device to another: in order, without a host that waits, directly where a plugin can."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import stacks
from nnc_core.base.errors import DeviceFailureError, FallbackWarning
from nnc_core.builtin import FLAVOURS, StrictDevice
from nnc_core.device import DONE, Buffer, Device, Event, Registry
from nnc_core.stacks import Stack, make_stack
from nnc_plugins import Manager, PluginWarning, hookimpl

HOST = np.arange(5, dtype=np.float32)
LATE = next(flavour for flavour in FLAVOURS if flavour.queues)


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stacks, "_manager", Manager(only=()))
    monkeypatch.setattr(stacks, "registry", Registry())
    monkeypatch.setattr(stacks, "_stacks", {})
    return (yield)


def late() -> Stack:
    return stack_named("late:0", StrictDevice(LATE))


def stack_named(id: str, device: Device) -> Stack:
    stacks._stacks[id] = made = make_stack(device)
    object.__setattr__(device.spec, "id", id)
    return made


def prompt(id: str = "prompt:0") -> Stack:
    return stack_named(id, StrictDevice())


class Patience:
    """Opens a gate when it is over: a call that waits for the gate takes so long, and is seen to."""

    def __init__(self, stream: Any) -> None:
        self.gate, self.over = stream.gate(), False
        self.timer = threading.Timer(30, self._end)
        self.timer.start()

    def _end(self) -> None:
        self.over = True
        self.gate.open()

    def open(self) -> None:
        self.timer.cancel()
        assert not self.over, "the host has waited"
        self.gate.open()


def test_nobody_waits_between_devices_that_work_later() -> None:
    first, second = late(), stack_named("later:0", StrictDevice(LATE))
    x = nnc.asarray(HOST, device=first)
    patience = Patience(first.device.default_stream)
    y = (x + x).to(second)
    z = (y * y).to(first) + x
    patience.open()
    assert z.tolist() == [0, 5, 18, 39, 68]


def test_memory_that_the_host_sees_is_copied_before_the_call_returns() -> None:
    second, x = late(), nnc.asarray(HOST, device=prompt())
    patience = Patience(second.device.default_stream)
    y = x.to(second)
    x[0] = 100
    patience.open()
    assert y.tolist() == HOST.tolist()


def test_a_source_may_change_once_its_copy_is_on_the_way() -> None:
    first, second = late(), stack_named("later:0", StrictDevice(LATE))
    x, other = nnc.asarray(HOST, device=first), nnc.asarray(HOST + 7, device=first)
    patience = Patience(first.device.default_stream)
    y = x.to(second)
    x += other
    patience.open()
    assert y.tolist() == HOST.tolist()


def test_the_error_of_the_source_is_raised_where_the_copy_is_looked_at() -> None:
    first, second = late(), stack_named("later:0", StrictDevice(LATE))
    x = nnc.asarray(HOST, device=first)

    def fail() -> None:
        raise DeviceFailureError("the cable is out")

    first.device.run("cable", None, fail)  # type: ignore[attr-defined]
    y = x.to(second)
    y = y + y
    with pytest.raises(DeviceFailureError, match="the cable is out"):
        y.tolist()


class Direct:
    """A plugin whose copies between devices named prompt:N go from memory to memory."""

    def __init__(self, able: bool = True) -> None:
        self.able, self.asked, self.copied = able, 0, 0

    @hookimpl
    def nnc_transfer(self, source: Device, target: Device) -> Any:
        self.asked += 1
        if not (source.spec.id.startswith("prompt") and target.spec.id.startswith("prompt")):
            return None

        def copy(here: Buffer, there: Buffer, nbytes: int) -> Event:
            self.copied += 1
            if not self.able:
                return NotImplemented  # type: ignore[no-any-return]
            there.open(target)[:nbytes] = here.open(source)[:nbytes]  # type: ignore[attr-defined]
            return DONE

        return copy


def run_eagerly(x: nnc.Tensor, target: Stack) -> nnc.Tensor:
    return x.to(target)


def run_compiled(x: nnc.Tensor, target: Stack) -> nnc.Tensor:
    return nnc.jit(lambda x: (x + 0).to(target))(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("run", [run_eagerly, run_compiled])
def test_a_plugin_copies_directly(run: Any) -> None:
    plugin = Direct()
    nnc.register_plugin(plugin, "direct")
    first, second, third = prompt(), prompt("prompt:1"), late()
    x = nnc.asarray(HOST.reshape(1, 5), device=first)
    for _ in range(2):
        assert run(x, second).tolist() == [HOST.tolist()]
    assert run(x, third).tolist() == [HOST.tolist()]
    assert (plugin.asked, plugin.copied) == (2, 2)


def test_views_are_packed_before_they_are_copied_directly() -> None:
    nnc.register_plugin(Direct(), "direct")
    first, second = prompt(), prompt("prompt:1")
    x = nnc.asarray(np.arange(12.0).reshape(3, 4), device=first)
    assert x.T[1:, ::2].to(second).tolist() == [[1, 9], [2, 10], [3, 11]]


def test_what_a_direct_copy_cannot_do_goes_by_way_of_the_host() -> None:
    plugin = Direct(able=False)
    nnc.register_plugin(plugin, "unable")
    assert nnc.asarray(HOST, device=prompt()).to(prompt("prompt:1")).tolist() == HOST.tolist()
    assert plugin.copied == 1


@pytest.mark.parametrize(("answer", "warning", "match"), [
    (lambda source, target: 5, FallbackWarning, "nnc_transfer gave int"),
    (lambda source, target: 1 / 0, PluginWarning, "nnc_transfer: ZeroDivisionError"),
])
def test_a_plugin_that_answers_wrongly_is_done_without(answer: Any, warning: Any, match: str) -> None:
    nnc.register_plugin(SimpleNamespace(nnc_transfer=hookimpl(answer)), "wrong")
    x, target = nnc.asarray(HOST, device=prompt()), prompt("prompt:1")
    with pytest.warns(warning, match=match):
        y = x.to(target)
    assert y.tolist() == x.to(target).tolist() == HOST.tolist()
