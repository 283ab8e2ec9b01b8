"""Calls of compiled graphs: at the same time, failing, step by step, timed."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.errors import ExecutionError
from nnc_core.device import Buffer, Kernel, Launch, Pool, Stream
from nnc_core.engine.program_slots import SMALL
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.values.tree import flatten
from tests.engine.conftest import call, floats, graph
from tests.support import at_once


class Broken(Kernel):
    """A kernel that cannot be launched."""

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        def launch() -> None:
            raise RuntimeError("out of luck")

        return launch


def test_calls_at_the_same_time_have_arenas_of_their_own(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 64)
    run = stack.engine.compile(graph({"x": x}, {"y": F.sum(F.multiply(F.exp(x), F.sin(x)), axis=(0,))}))
    wrong: list[float] = []

    def work(k: int) -> None:
        given = np.full(64, k, np.float32)
        expected = call(run, x=given)["y"]
        wrong.extend(1.0 for _ in range(20) if call(run, x=given)["y"] != expected)

    at_once(work, range(4))
    assert not wrong


def test_a_failing_command_is_named_and_the_next_call_works(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4)
    run = stack.engine.compile(graph({"x": x}, {"y": F.sin(F.exp(x))}))
    whole = run.records
    run.records = (whole[0], type(whole[1])(Broken(), whole[1].slots, whole[1].label))
    run._idle.clear()
    with pytest.raises(ExecutionError, match="out of luck") as caught:
        call(run, x=np.zeros(4, np.float32))
    assert caught.value.operator == "sin" and caught.value.device == "strict:0"
    run.records = whole
    np.testing.assert_array_equal(call(run, x=np.zeros(4, np.float32))["y"], np.sin(np.ones(4, np.float32)))


@pytest.mark.parametrize(("broken", "lost"), [(0, frozenset()), (2, frozenset({"w"}))])
def test_only_state_that_was_begun_is_lost(stack: Stack, F: Nodes, broken: int, lost: frozenset[str]) -> None:
    w, g = floats(F, "w", 4), floats(F, "g", 4)
    new = F.subtract(w, g)
    run = stack.engine.compile(graph({"w": w, "g": g}, {"a": F.exp(w), "new": new, "b": F.exp(new)}, ("new", "w")))
    assert [r.label for r in run.records] == ["exp", "subtract", "exp"]
    records = list(run.records)
    records[broken] = type(records[broken])(Broken(), records[broken].slots, records[broken].label)
    run.records = tuple(records)
    with pytest.raises(ExecutionError) as caught:
        call(run, w=np.zeros(4, np.float32), g=np.zeros(4, np.float32))
    assert caught.value.lost == lost


class Unbindable(Kernel):
    """A kernel whose arguments cannot be set."""

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        raise RuntimeError("no such argument")


def test_nothing_is_lost_if_nothing_was_launched(stack: Stack, F: Nodes) -> None:
    w, g = floats(F, "w", 4), floats(F, "g", 4)
    run = stack.engine.compile(graph({"w": w, "g": g}, {"new": F.subtract(w, g), "b": F.exp(g)}, ("new", "w")))
    given = {"w": np.zeros(4, np.float32), "g": np.zeros(4, np.float32)}
    call(run, **given)  # a run that ended well says nothing about the next
    (program,) = run._idle
    last = len(run.records) - 1
    broken = type(run.records[last])(Unbindable(), run.records[last].slots, run.records[last].label)
    program.calls[last] = broken  # type: ignore[attr-defined]
    with pytest.raises(ExecutionError, match="no such argument") as caught:
        call(run, **given)
    assert caught.value.lost == frozenset() and caught.value.operator == broken.label


def memory_of(x: nnc.Tensor, pool: Pool) -> tuple[weakref.ref[Any], weakref.ref[Any]]:
    """The claim through which a tensor of the CPU is seen, if it is in the pool, and the allocation that it lies in."""
    array = x._value.array
    while array.base is not None and not pool.is_claim(array):
        array = array.base
    claim = weakref.ref(array)
    while array.base is not None:
        array = array.base
    return claim, weakref.ref(array)


ELEMENTS = SMALL // 4
CALLS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "commands": (lambda x: (nnc.sin(nnc.exp(x)), nnc.cos(x)), (ELEMENTS,)),
    "scan": (lambda xs: nnc.scan(lambda c, x: (c + x, c * x), xs[0], xs), (4, ELEMENTS)),
    "scan of small rows": (lambda xs: nnc.scan(lambda c, x: (c, c * x), nnc.sum(xs), xs)[1], (64, ELEMENTS // 64)),
    "scan backwards": (lambda xs: nnc.scan(lambda c, x: (c + x, c * x), xs[0], xs, reverse=True), (4, ELEMENTS)),
    "while": (lambda x: nnc.while_loop(lambda y, z: nnc.sum(y) < 1, lambda y, z: (y + 1, y * z), (x, x)), (ELEMENTS,)),
    "branches": (lambda x: nnc.cond(nnc.sum(x) > 0, nnc.sin, lambda x: nnc.exp(x) * 2, x), (ELEMENTS,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_program_that_waits_keeps_no_large_arrays_of_its_callers(name: str) -> None:
    """What a call was given and has returned is free when its caller drops it: for others at once, for the machine when
    the pool is trimmed.  Memory from elsewhere, which no pool has, is free at once."""
    f, shape = CALLS[name]
    compiled = nnc.jit(f)
    with nnc.use_device("cpu:0"):
        pool, elsewhere = nnc.stack_for(None).device.pool, nnc.zeros(shape)
        for k in (0, 1, 2, 3):
            given = nnc.asarray(np.full(shape, k, np.float32)) if k % 2 else elsewhere + k
            found = flatten(compiled(given))[0]
            for y, wanted in zip(found, flatten(f(given))[0], strict=True):
                np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-5)
            claims, kept = zip(*[memory_of(x, pool) for x in (given, *found)], strict=True)
            del given, found, y, wanted
            gc.collect()
            assert all([claim() is None for claim in claims])
            pool.trim()
            assert all([ref() is None for ref in kept])


def test_small_arrays_stay_bound() -> None:
    """The next call with them sets no argument again."""
    with nnc.use_device("cpu:0"):
        f, x = nnc.jit(nnc.tanh), nnc.zeros(ELEMENTS - 1)
        f(x)
        (program,) = f.lower(x).program._idle
        assert program.slots[f.lower(x).program._slots.inputs["arg0"]] is not None  # type: ignore[attr-defined]


def test_step_by_step(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4)
    run = stack.engine.compile(graph({"x": x}, {"y": F.sin(F.exp(x))}))
    with config.using(eager=True):
        np.testing.assert_array_equal(call(run, x=np.zeros(4, np.float32))["y"], np.sin(np.ones(4, np.float32)))


def test_profile(stack: Stack, F: Nodes, tmp_path: Path) -> None:
    x = floats(F, "x", 16)
    run = stack.engine.compile(graph({"x": x}, {"y": F.sin(F.exp(x))}))
    profile = run.profile_arrays({"x": stack.engine.executor.upload(np.zeros(16, np.float32))})
    assert [t.command.split("(")[0] for t in profile.timings] == ["exp", "sin"]
    assert "exp(float32[16])" in str(profile) and profile.seconds > 0
    events = json.loads(profile.save_trace(tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"].split("(")[0] for e in events] == ["exp", "sin"]


def test_profiling_leaves_state_alone(stack: Stack, F: Nodes) -> None:
    w = floats(F, "w", 4)
    run = stack.engine.compile(graph({"w": w}, {"new": F.add(w, 1.0)}, ("new", "w")))
    array = stack.engine.executor.upload(np.zeros(4, np.float32))
    run.profile_arrays({"w": array}, repeats=3)
    np.testing.assert_array_equal(stack.engine.executor.download(array), np.zeros(4))


def test_a_profile_tells_what_commands_compute_and_move(stack: Stack, F: Nodes) -> None:
    x, y = (floats(F, name, 30, 30) for name in "xy")
    run = stack.engine.compile(graph({"x": x, "y": y}, {"z": F.matmul(x, y)}))
    given = {name: stack.engine.executor.upload(np.ones((30, 30), np.float32)) for name in "xy"}
    profile = run.profile_arrays(given)
    [timing] = [t for t in profile.timings if t.command.startswith("matmul")]
    assert timing.cost == (2 * 30**3, 3 * 3600)
    assert "54.0 kflop   10.8 kB" in str(profile)
