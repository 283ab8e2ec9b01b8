"""The dynamic graph as NNC means it: what is freed when (docs/nnc_cases.md maps the cases)."""

from __future__ import annotations

import gc
import math
import random
import subprocess
import sys
import weakref

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.values.value import Step, Value
from tests.sizes import whole_or_quarter
from tests.tensors.algodiff.references import by_counting_references, gradient_of


def alive(kind: type) -> int:
    return sum(type(x) is kind for x in gc.get_objects())


# ---- memory
def test_unused_values_of_a_long_graph_are_freed(device: str) -> None:
    with by_counting_references():
        x = nnc.variable(1.0)
        before = alive(Step)
        for _ in range(200):
            y = x * 2
            for _ in range(4):
                y = nnc.tanh(y)
        assert alive(Step) - before == 5 == nnc.bookkeeping_count(y)
        del y
        assert alive(Step) == before


def test_intermediate_results_are_freed(device: str) -> None:
    """f(x) = x log x + x, f'(10): after backward and the end of f nothing but x and its gradient is left"""
    with by_counting_references():
        x = nnc.variable(10.0)
        x.grad = nnc.asarray(0.0)
        before = alive(Value)
        f = x * nnc.log(x) + x
        f.backward()
        del f
        assert gradient_of(x) == pytest.approx([math.log(10) + 2], rel=1e-6) and alive(Value) == before


def test_long_chain_with_names_dropped_at_random(device: str) -> None:
    rng = random.Random(0)
    x = nnc.variable(np.ones(4, np.float32))
    named = [x * 1.0]
    y = named[0]
    for _ in range(300):
        y = y + 0.5 * rng.choice(named)
        named.append(y)
        while len(named) > 5:
            named.pop(rng.randrange(len(named)))
    y.sum().backward()
    (wanted,) = nnc.gradients(y, [x], nnc.ones(4))
    assert wanted is not None and gradient_of(x) == wanted.tolist()
    np.testing.assert_allclose(gradient_of(x), y.numpy(), rtol=1e-5)


@pytest.mark.parametrize("goes_back", [True, False])
def test_evaluations_with_variables_stay_flat(device: str, goes_back: bool) -> None:
    """Thousands of them, with backward and without: the number of values and steps that are alive does not grow."""
    w, b, x = nnc.variable([0.5, 0.25]), nnc.variable(0.1), nnc.asarray([1.0, 2.0])

    def evaluate(times: int) -> tuple[int, int]:
        for _ in range(times):
            w.grad = None
            loss = ((w * x).sum() + b) * 2
            if goes_back:
                loss.backward()
        del loss
        return alive(Value), alive(Step)

    with by_counting_references():
        first = evaluate(10)
        assert evaluate(whole_or_quarter(10_000) if device.startswith("cpu") else 500) == first


TRAINING = """
import gc, sys, tracemalloc
import numpy as np
import nnc_core as nnc
from nnc_core import nn, optim

net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).requires_grad_()
minimiser = optim.SGD(net.named_parameters(), learning_rate=0.001)
x = nnc.asarray(np.ones((16, 64), np.float32))

def train(times):
    for _ in range(times):
        net.zero_grad()
        net(x).sum().backward()
        minimiser.update(net.gradients())
    gc.collect()
    return tracemalloc.get_traced_memory()[0]

tracemalloc.start()
start = train(100)  # NumPy and the pool keep some small pieces for later, more and more slowly
print(train(int(sys.argv[1])) - start)
"""


def test_the_bytes_of_a_training_loop_stay_flat() -> None:
    """In a process of its own: tables of what other tests have left in caches are made anew now and then."""
    times = whole_or_quarter(1000)
    done = subprocess.run([sys.executable, "-c", TRAINING, str(times)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < times * 64 * 4 // 2, "less than half of the smallest array for each step"


def test_a_hook_that_closes_over_its_tensor_keeps_nothing_alive(device: str) -> None:

    def close_over() -> list[weakref.ref[Value]]:
        x = nnc.variable([1.0])
        y = x * 2
        y.register_hook(lambda g: g * y.shape[0])
        x.register_hook(lambda g: g * x.shape[0])
        return [weakref.ref(x._value), weakref.ref(y._value)]

    seen = close_over()
    gc.collect()
    assert [r() for r in seen] == [None, None]
