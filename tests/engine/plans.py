"""Looking into what a function with loops and branches is compiled to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.record import Call, Record
from nnc_core.engine import ComputationGraph
from nnc_core.engine.program_tree import CommandItem, LoopItem, walk

Function = Callable[..., Any]


@contextmanager
def every_program() -> Iterator[list[ComputationGraph]]:
    """Whatever is compiled within it."""
    found: list[ComputationGraph] = []
    init = ComputationGraph.__init__

    def noted(self: ComputationGraph, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        found.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ComputationGraph, "__init__", noted)
        yield found


def lowered(f: Function, *args: Any, device: str = "strict:0") -> ComputationGraph:
    """What f is compiled to for these arguments; captured arrays become inputs."""
    with nnc.use_device(device), nnc.config.using(deterministic=True):
        return nnc.jit(f).lower(*map(nnc.asarray, args)).program


def both_ways(f: Function, *args: Any, device: str = "strict:0") -> list[np.ndarray[Any, Any]]:
    """The results of f, compiled and called twice, which are those of eager execution to the bit."""
    with nnc.use_device(device), nnc.config.using(deterministic=True):
        xs = [nnc.asarray(a) for a in args]
        wanted = [y.numpy() for y in _sequence(f(*xs))]
        compiled = nnc.jit(lambda *ys: f(*ys))
        for _ in range(2):
            found = [y.numpy() for y in _sequence(compiled(*xs))]
            assert len(found) == len(wanted)
            for a, b in zip(found, wanted, strict=True):
                assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), f"{a}\neager:\n{b}"
        return found


def _sequence(result: Any) -> Sequence[Any]:
    return result if isinstance(result, (tuple, list)) else [result]


def loops(run: ComputationGraph) -> list[LoopItem]:
    """Outer ones first."""
    return [item for item in walk(run.plan.items) if isinstance(item, LoopItem)]


def copies_written(run: ComputationGraph) -> int:
    """How many copies of its body the only loop has, besides one."""
    (loop,) = loops(run)
    assert loop.plan.unrolling is not None, "pointers rotate"
    return loop.plan.unrolling.copies


def copied(run: ComputationGraph) -> list[str]:
    """The notes of all commands that copy."""
    return [s.note for s in run.plan.steps if s.group.op.name == "copy"]


def steps_of(loop: LoopItem) -> list[str]:
    """Operators of a loop's body."""
    return [step.group.op.name for item in loop.body if isinstance(item, CommandItem) for step in item.planned]


def records(found: Sequence[Record]) -> Iterator[Record]:
    """All records, those inside others after them."""
    for record in found:
        yield record
        yield from records(getattr(record, "records", ()))


def kinds(run: ComputationGraph) -> list[str]:
    """The kinds of its records that are no calls, each once."""
    return sorted({type(r).__name__ for r in records(run.records) if not isinstance(r, Call)})


def calls(run: ComputationGraph) -> int:
    """How many calls are written down."""
    return sum(isinstance(r, Call) for r in records(run.records))
