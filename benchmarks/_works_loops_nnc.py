"""Compiled loops in nnc."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import nnc_core as nnc
from benchmarks._loops import COUNT, WORKS

TOOLS = SimpleNamespace(xp=nnc, array=nnc.asarray, softmax=nnc.softmax, top_k=nnc.top_k, cond=nnc.cond)


def make(work: str, variant: str) -> Callable[[], object]:
    start, body = WORKS[work]
    first = nnc.asarray(start())
    loop = nnc.jit(lambda c, numbers: nnc.scan(lambda c, i: (body(TOOLS, c, i).astype(first.dtype), i), c, numbers)[0])
    numbers = nnc.arange(COUNT)
    return lambda: loop(first, numbers).numpy()
