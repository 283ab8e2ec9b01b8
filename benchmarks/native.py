"""Programs of cpu:0 in machine code, beside the same ones run from Python, NumPy, and JAX and torch if they are there.

A chain of small operations, a call with ten small arguments, a loop of small rounds, an LSTM that is trained, and one
large operation by several threads: minima of rounds in turn, since others may use the machine meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._measure import least, show
from benchmarks.chain import chained, chained_by_hand
from benchmarks.overhead import total
from benchmarks.scan import BATCH, HIDDEN, INPUTS, by_scan
from nnc_cpu.device import CpuDevice
from nnc_cpu.program import NumpyProgram

Host = np.ndarray[Any, Any]
Cases = dict[str, Callable[[], object]]
LENGTH, ROUNDS, LARGE = 64, 100, 1 << 22


class FromPython(CpuDevice):
    """Runs records from Python."""

    def capture(self, *given: Any) -> NumpyProgram:
        program = super().capture(*given)
        assert isinstance(program, NumpyProgram)
        program.machines.clear()
        return program


def compiled(f: Callable[..., Any], *hosts: Host) -> Cases:
    """The function in machine code and from Python."""
    found: Cases = {}
    for name, device in (("nnc.jit", CpuDevice()), ("nnc.jit, run from Python", FromPython())):
        with nnc.use_device(nnc.make_stack(device)):
            call = _kept(nnc.jit(f), [nnc.asarray(x) for x in hosts])
            with nnc.config.using(compile_at_once=True):
                call()
            found[name] = partial(copy_context().run, call)
    return found


def _kept(f: Callable[..., Any], arguments: list[Any]) -> Callable[[], object]:
    """A call that keeps its result until the next, as a training loop does."""
    results: list[Any] = [None]

    def call() -> None:
        results[0] = f(*arguments)

    return call


def with_jax(f: Callable[..., Any], *hosts: Host) -> Cases:
    with suppress(ImportError):
        import jax

        step, arrays = jax.jit(f), [jax.numpy.asarray(x) for x in hosts]
        return {"jax.jit": lambda: jax.block_until_ready(step(*arrays))}
    return {}


def chain() -> Cases:
    x = np.ones(1000, np.float32)
    return {"numpy": lambda: chained(x), "numpy, out=": lambda: chained_by_hand(x), **compiled(chained, x),
            **with_jax(chained, x)}


def ten_arguments() -> Cases:
    hosts = [np.full(8, k, np.float32) for k in range(10)]
    return {"numpy": lambda: total(*hosts), **compiled(total, *hosts), **with_jax(total, *hosts)}


def small_rounds() -> Cases:
    def by_hand(x: Host) -> Host:
        for _ in range(ROUNDS):
            x = np.tanh(x * np.float32(1.1))
        return x

    def loop(x: Any) -> Any:
        return nnc.while_loop(lambda i, _: i < ROUNDS, lambda i, x: (i + 1, nnc.tanh(x * 1.1)), (0, x))[1]

    x = np.ones(100, np.float32)
    return {"numpy": lambda: by_hand(x), **compiled(loop, x)}


def lstm() -> Cases:
    rng = np.random.default_rng(0)
    hosts = [rng.normal(0, 0.1, shape).astype(np.float32) for shape in (
        (LENGTH, BATCH, INPUTS), (INPUTS, 4 * HIDDEN), (HIDDEN, 4 * HIDDEN))]
    return {"numpy": lambda: lstm_by_hand(*hosts), **compiled(nnc.value_and_grad(by_scan, (1, 2)), *hosts),
            **lstm_by_torch(hosts[0])}


def lstm_by_hand(xs: Host, w: Host, u: Host) -> tuple[Host, Host]:
    """The gradients of the weights."""
    def sigmoid(x: Host) -> Host:
        return 1 / (1 + np.exp(-x))

    h = c = np.zeros((BATCH, HIDDEN), np.float32)
    steps = []
    for x in xs:
        z = x @ w + h @ u
        i, f, o = (sigmoid(z[:, k * HIDDEN : (k + 1) * HIDDEN]) for k in range(3))
        g = np.tanh(z[:, 3 * HIDDEN :])
        new = f * c + i * g
        steps.append((x, h, c, i, f, o, g, np.tanh(new)))
        c, h = new, o * steps[-1][-1]
    dw, du, dh, dc = np.zeros_like(w), np.zeros_like(u), np.zeros_like(h), np.zeros_like(c)
    for x, before, c, i, f, o, g, t in reversed(steps):
        dh = dh + 2 * o * t
        dc = dc + dh * o * (1 - t * t)
        dz = np.concatenate([dc * g * i * (1 - i), dc * c * f * (1 - f), dh * t * o * (1 - o), dc * i * (1 - g * g)], 1)
        dw += x.T @ dz
        du += before.T @ dz
        dh, dc = dz @ u.T, dc * f
    return dw, du


def lstm_by_torch(xs: Host) -> Cases:
    with suppress(ImportError):
        import torch

        net, x = torch.nn.LSTM(INPUTS, HIDDEN), torch.asarray(xs)

        def step() -> None:
            net.zero_grad()
            net(x)[0].square().sum().backward()

        return {"torch": step}
    return {}


def threads() -> Cases:
    x = np.linspace(-1, 1, LARGE, dtype=np.float32)
    call = compiled(lambda x: nnc.tanh(x) * x + 1, x)["nnc.jit"]

    def using(count: int) -> Callable[[], object]:
        def with_threads() -> None:
            with nnc.config.using(threads=count):
                call()

        return with_threads

    counts = sorted({1, 2, os.cpu_count() or 1})
    return {"numpy": lambda: np.tanh(x) * x + 1, **{f"nnc.jit, threads = {count}": using(count) for count in counts}}


BENCHMARKS: Mapping[str, tuple[Callable[[], Cases], int, int]] = {
    "200 operations on 1,000 floats": (chain, 40, 200),
    "9 additions of 10 arrays of 8 floats": (ten_arguments, 100, 100),
    f"a while loop of {ROUNDS} rounds on 100 floats": (small_rounds, 40, 50),
    f"gradients of an LSTM in a loop, {LENGTH} rounds": (lstm, 20, 1),
    f"tanh(x) * x + 1 of {LARGE:,} floats": (threads, 30, 1),
}
"""What is compared, by how many rounds, and how many calls in each."""


def main() -> None:
    for title, (make, rounds, calls) in BENCHMARKS.items():
        times = least(make(), rounds, calls)
        base = times["numpy"]
        show(f"{title}, minima", ["", "us", "x numpy"],
             [[name, f"{s * 1e6:.1f}", f"{s / base:.2f}"] for name, s in times.items()])


if __name__ == "__main__":
    main()
