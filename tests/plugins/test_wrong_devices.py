"""Devices that are not what their plugins offer: one error each, and nobody else's device is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import nnc_core as nnc
from nnc_core import stacks
from nnc_core.base.errors import DeviceError, DeviceMemoryError, ExecutionError
from nnc_core.builtin import StrictDevice
from nnc_core.device import Kernel, Registry
from nnc_plugins import DeviceOffer, Manager, PluginWarning, hookimpl
from tests.builtin.strict_devices import called


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[nnc.Tensor]:
    """An array on `strict:0`, which computes as before when all is over."""
    monkeypatch.setattr(stacks, "_manager", Manager(only=()))
    monkeypatch.setattr(stacks, "registry", Registry())
    monkeypatch.setattr(stacks, "_stacks", {})
    monkeypatch.setattr(stacks, "_names", {})
    stacks.registry.add("strict:0", StrictDevice)
    x = nnc.ones(2, device="strict:0")
    yield x
    assert stacks.stack_for("strict:0") is stacks.stack_for(x.device)
    assert (x + nnc.ones(2, device="strict:0")).tolist() == [2, 2]


def offer(name: str, *offers: tuple[str, Callable[[], Any]]) -> None:
    listed = [DeviceOffer(id, open) for id, open in offers]
    stacks.register_plugin(SimpleNamespace(nnc_devices=hookimpl(lambda: listed)), name)


@pytest.mark.parametrize(("given", "told"), [
    (StrictDevice, "ValueError: the device calls itself strict:0"),
    (lambda: None, "TypeError: opening gave NoneType, expected a nnc_core.device.Device"),
    (called("wrong:1"), "ValueError: the device calls itself wrong:1"),
    (lambda: exec("raise SystemExit(3)"), "SystemExit: 3"),
])  # fmt: skip
def test_what_is_not_the_device_that_was_offered_is_not_opened(given: Callable[[], Any], told: str) -> None:
    offer("off", ("wrong:0", given), ("right:0", called("right:0")))
    for _ in range(2):
        with pytest.raises(DeviceError) as caught:
            nnc.ones(2, device="wrong:0")
        for part in (f"device 'wrong:0' cannot be opened: {told}", "offered by plugin off", "nnc devices"):
            assert part in str(caught.value)
    assert nnc.ones(2, device="right:0").tolist() == [1, 1]


def test_an_interrupt_while_a_device_is_opened_is_the_users() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    offer("slow", ("slow:0", interrupted))
    with pytest.raises(KeyboardInterrupt):
        nnc.ones(2, device="slow:0")


def test_of_two_plugins_with_one_id_the_first_is_taken_and_the_other_told_of() -> None:
    offer("first", ("twice:0", called("twice:0")))
    x = nnc.ones(2, device="twice:0")
    with pytest.warns(PluginWarning, match="plugin second .*'twice:0' is already offered by plugin 'first', ignored"):
        offer("second", ("twice:0", called("twice:0")), ("other:0", called("other:0")))
    assert stacks.stack_for("twice:0") is stacks.stack_for(x.device) and (x + x).tolist() == [2, 2]
    assert nnc.ones(2, device="other:0").tolist() == [1, 1]


class Greedy(StrictDevice):
    def reserve(self, nbytes: int) -> Any:
        raise DeviceMemoryError(f"{40 << 30} bytes asked for")


class Failing(StrictDevice):
    """Its kernels raise what Python raises."""

    def compile(self, nest: Any) -> Kernel:
        class Raising(Kernel):
            def bind(self, buffers: Any, stream: Any = None) -> Any:
                return lambda: {}["kernel"]

        return Raising()


def test_memory_that_is_not_there_names_the_device() -> None:
    offer("greedy", ("greedy:0", called("greedy:0", Greedy)))
    with pytest.raises(DeviceMemoryError, match=rf"{40 << 30} bytes asked for(?s:.*)device: greedy:0"):
        nnc.ones(2, device="greedy:0")


@pytest.mark.parametrize("run", [lambda x: nnc.sin(x), lambda x: nnc.jit(lambda x: nnc.sin(x))(x)],
                         ids=["eager", "compiled"])
def test_what_a_kernel_raises_names_operator_device_and_line(run: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    offer("failing", ("failing:0", called("failing:0", Failing)))
    x = nnc.asarray([1.0, 2.0], device="failing:0")
    with pytest.raises(ExecutionError, match=r"sin: KeyError: 'kernel'(?s:.*)device: failing:0\n  at: .*") as caught:
        run(x)
    assert isinstance(caught.value.__cause__, KeyError)
