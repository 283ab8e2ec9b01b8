"""A device that is lost is opened anew: what was on it is gone, what comes then works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nnc_core as nnc
from nnc_core import stacks
from nnc_core.base.errors import DeviceFailureError, DeviceLostError
from nnc_core.builtin import StrictDevice
from nnc_core.device import Registry


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr(stacks, "registry", made := Registry())
    monkeypatch.setattr(stacks, "_stacks", {})
    monkeypatch.setattr(stacks, "_look_for", lambda kind: None)
    made.add("strict:0", StrictDevice)
    yield made


def test_a_lost_device_works_again() -> None:
    x = nnc.ones(3, device="strict:0")
    step = nnc.jit(lambda x: x * 2 + 1)
    assert step(x).tolist() == [3, 3, 3]
    nnc.stack_for("strict:0").device.close()  # as a driver does by itself
    for lost in (lambda: x + x, lambda: step(x), lambda: nnc.ones(3, device="strict:0")):
        with pytest.raises(DeviceLostError, match=r"nnc\.reopen"):
            lost()
    assert nnc.reopen("strict:0").id == "strict:0"
    fresh = nnc.ones(3, device="strict:0")
    assert (fresh + fresh).tolist() == [2, 2, 2] and step(fresh).tolist() == [3, 3, 3]
    with pytest.raises(nnc.Error, match="two different stacks of strict:0"):
        fresh + x


class Unruly(StrictDevice):
    def close(self) -> None:
        raise DeviceFailureError("the context is gone")


def test_a_device_that_cannot_even_be_closed_is_opened_anew(registry: Registry) -> None:
    registry.add("unruly:0", Unruly)
    first = registry.get("unruly:0")
    assert registry.reopen("unruly:0") is not first
    assert registry.get("unruly:0") is registry.get("unruly:0")


def test_a_device_that_was_never_open_is_opened(registry: Registry) -> None:
    assert registry.reopen("strict:0") is registry.get("strict:0")
    with pytest.raises(nnc.errors.DeviceError, match="no device 'x:0'"):
        registry.reopen("x:0")


@pytest.mark.parametrize("wrong", [None, 5])
def test_the_default_device_is_not_opened_anew_without_its_name(wrong: object) -> None:
    x = nnc.ones(2, device="strict:0")
    with pytest.raises(nnc.errors.DeviceError, match="names no device"):
        nnc.reopen(wrong)  # type: ignore[arg-type]
    assert (x + nnc.ones(2, device="strict:0")).tolist() == [2, 2]
