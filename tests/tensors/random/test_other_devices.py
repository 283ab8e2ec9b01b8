"""The default generator goes to whichever device draws, compiled code included: one stream for all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

DEVICES = ("cpu:0", "strict:0")


@pytest.fixture
def dropped() -> Callable[[nnc.Tensor], nnc.Tensor]:
    return nnc.jit(lambda x: nnc.dropout(x, 0.5))


def ones(device: str) -> nnc.Tensor:
    return nnc.ones((64,), device=device)


def stream(draws: int) -> list[Any]:
    nnc.manual_seed(3)
    return [nnc.dropout(ones("cpu:0"), 0.5).numpy() for _ in range(draws)]


def test_compiled_code_of_two_devices_draws_from_one_stream(dropped: Any) -> None:
    wanted = stream(6)
    with nnc.use_device("cpu:0"):
        nnc.manual_seed(3)
    for k, one in enumerate(wanted):
        found = dropped(ones(DEVICES[k % 2]))
        assert found.device.id == DEVICES[k % 2]
        np.testing.assert_array_equal(found.numpy(), one)
    assert dropped.traces == 2


def test_compiled_and_eager_code_of_two_devices_take_turns(dropped: Any) -> None:
    wanted = stream(4)
    nnc.manual_seed(3)
    found = [dropped(ones("strict:0")), nnc.dropout(ones("cpu:0"), 0.5), dropped(ones("strict:0"))]
    found.append(dropped(ones("strict:0")))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)
    assert dropped.traces == 1


def test_bodies_of_control_flow_bring_it_too() -> None:
    wanted = stream(1)[0]
    nnc.dropout(ones("cpu:0"), 0.5)
    branch = nnc.jit(lambda p, x: nnc.cond(p, lambda x: nnc.dropout(x, 0.5), lambda x: x, x))
    with nnc.use_device("cpu:0"):
        nnc.manual_seed(3)
    np.testing.assert_array_equal(branch(nnc.asarray(True, device="strict:0"), ones("strict:0")).numpy(), wanted)


def test_a_function_that_draws_on_two_devices_at_once_is_refused_with_both() -> None:
    both = nnc.jit(lambda x, y: (nnc.dropout(x, 0.5), nnc.dropout(y, 0.5)))
    with pytest.raises(nnc.errors.DeviceError, match=r"dropout: operands are on .*(cpu|strict):0"):
        both(ones("cpu:0"), ones("strict:0"))


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns after a few operations of Python."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("compiled", [(False, False), (False, True), (True, True)])
def test_threads_draw_on_two_devices(hasty: None, compiled: tuple[bool, bool]) -> None:
    """Each draw has a number of its own, whichever thread makes it."""
    wanted = {one.tobytes() for one in stream(200)}

    def drawn(device: str, is_compiled: bool) -> list[bytes]:
        f = nnc.jit(lambda x: nnc.dropout(x, 0.5)) if is_compiled else lambda x: nnc.dropout(x, 0.5)
        return [f(ones(device)).numpy().tobytes() for _ in range(100)]

    nnc.manual_seed(3)
    with ThreadPoolExecutor(2) as pool:
        found = [one for part in pool.map(drawn, DEVICES, compiled) for one in part]
    assert set(found) == wanted
