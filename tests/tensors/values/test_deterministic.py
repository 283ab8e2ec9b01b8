"""`config.deterministic`: operators that run by themselves run the commands of graphs, not the device's eager kernels.

The device here has eager kernels that give other numbers, so that one sees what computed.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.stacks import Stack, make_stack
from nnc_cpu.device import CpuDevice
from tests.support import eagerly, lazily, numbers, same

OTHER = 0.75
"""Added by the eager kernels to what they make."""
LOUD = ("add", "multiply", "tanh", "sigmoid", "matmul", "sum", "mean", "softmax")

Function = Callable[..., Any]


class LoudDevice(CpuDevice):
    """Has eager kernels that give away that they have run."""

    def __init__(self) -> None:
        super().__init__()
        self.eager = {name: self._loud(kernel) if name in LOUD else kernel for name, kernel in self.eager.items()}

    def _loud(self, kernel: Function) -> Function:
        return lambda *operands: np.asarray(kernel(*operands) + np.float32(OTHER))


@pytest.fixture
def loud() -> Iterator[Stack]:
    stack = make_stack(LoudDevice())
    with nnc.use_device(stack):
        yield stack


def network(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
    """A composite that library code takes whole, one that is expanded, views, numbers, a product."""
    return nnc.mean(nnc.softmax(nnc.tanh(x @ w) * 3.0 + 1.0)[:, ::2].T, axis=0)


def gradients(x: nnc.Tensor, w: nnc.Tensor) -> Any:
    return nnc.value_and_grad(lambda x, w: nnc.sum(nnc.sigmoid(network(x, w))), (0, 1))(x, w)


def taped(x: nnc.Tensor, w: nnc.Tensor) -> Any:
    """The same over the tape."""
    vx, vw = nnc.variable(x), nnc.variable(w)
    loss = nnc.sum(nnc.sigmoid(network(vx, vw)))
    loss.backward()
    return loss, (vx.grad, vw.grad)


def test_a_switch_that_takes_effect_at_once(loud: Stack) -> None:
    x = nnc.asarray([0.0, 0.0])
    for _ in range(2):
        assert nnc.tanh(x).tolist() == [OTHER, OTHER]
        with nnc.config.using(deterministic=True):
            assert nnc.tanh(x).tolist() == [0, 0]
            with nnc.config.using(deterministic=False):
                assert nnc.tanh(x).tolist() == [OTHER, OTHER]
            assert nnc.tanh(x).tolist() == [0, 0]
    nnc.config.deterministic = True
    try:
        assert nnc.tanh(x).tolist() == [0, 0]
    finally:
        nnc.config.deterministic = False
    assert nnc.tanh(x).tolist() == [OTHER, OTHER]


def test_the_fast_path_is_open_again_when_no_context_asks_for_the_commands(loud: Stack) -> None:
    before = set(CLOSED_BY)
    with nnc.config.using(deterministic=True):
        assert before < CLOSED_BY
    assert before == CLOSED_BY


def test_other_contexts_go_on_with_eager_kernels(loud: Stack) -> None:
    x, found = nnc.asarray([0.0]), list[Any]()
    outside = contextvars.copy_context()
    with nnc.config.using(deterministic=True):
        thread = threading.Thread(target=outside.run, args=(lambda: found.append(nnc.tanh(x).tolist()),))
        thread.start()
        thread.join()
        assert nnc.tanh(x).tolist() == [0]
    assert found == [[OTHER]]


@pytest.mark.parametrize("f", [network, gradients], ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", [eagerly, lazily, nnc.jit], ids=["eager", "deferred", "jit"])
def test_every_way_gives_what_the_quiet_device_gives(loud: Stack, f: Function, way: Function) -> None:
    x, w = numbers(4, 3), numbers(3, 6, seed=1)
    with nnc.config.using(deterministic=True):
        found = way(f)(nnc.asarray(x), nnc.asarray(w))
        with nnc.use_device("cpu:0"):
            wanted = nnc.jit(f)(nnc.asarray(x), nnc.asarray(w))
        same(found, wanted)


def test_gradients_over_the_tape(loud: Stack) -> None:
    x, w = numbers(4, 3), numbers(3, 6, seed=1)
    with nnc.config.using(deterministic=True):
        wanted = gradients(nnc.asarray(x), nnc.asarray(w))
        for _ in range(4):  # from the third on by a compiled graph
            same(taped(nnc.asarray(x), nnc.asarray(w)), wanted)


def test_commands_of_eager_code_are_kept(loud: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    x = nnc.asarray(numbers(5))
    with nnc.config.using(deterministic=True):
        first = nnc.tanh(x) + 1.0
        monkeypatch.setattr(loud.engine.builder, "build", None)
        same(nnc.tanh(x) + 1.0, first)
