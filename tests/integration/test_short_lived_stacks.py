"""A stack lives for as long as somebody holds it or an array on it: so do its device, memory, kernels and programs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.builtin import StrictDevice
from nnc_core.builtin.flavours import Flavour
from nnc_core.stacks import make_stack


def deferred(x: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        return x * 7


def layer(x: nnc.Tensor) -> nnc.Tensor:
    return nn.Linear(3, 2)(x)


WAYS: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
    "numbers beside tensors": lambda x: nnc.where(x > 1, x * 2.5 + 1, 0.0),
    "composites": nnc.softmax,
    "jit": lambda x: nnc.jit(lambda a: nnc.sum(a * 3))(x),
    "gradients": nnc.grad(lambda a: nnc.sum(a**2)),
    "deferred": deferred,
    "items": lambda x: x[1:],
    "loops": lambda x: nnc.while_loop(lambda a: nnc.sum(a) < 50, lambda a: (a * 2,), (x,))[0],
    "layers": layer,
    "creation": lambda x: nnc.arange(4) + nnc.ones(4),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_stack_goes_with_its_last_array(way: str) -> None:
    stack: Any = make_stack(StrictDevice(Flavour()))
    with nnc.use_device(stack):
        WAYS[way](nnc.asarray(np.ones(3, np.float32))).numpy()
    gone = ref(stack), ref(stack.device)
    del stack
    gc.collect()
    assert [found() for found in gone] == [None, None]
