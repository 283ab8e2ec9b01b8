"""Loops of both kinds, written alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

X = np.linspace(-1, 1, 16, dtype=np.float32)
Step = Callable[..., tuple[Any, ...]]


def counted(rounds: int, step: Step, *first: Any) -> tuple[Any, ...]:
    """A while loop of so many rounds."""
    found = nnc.while_loop(lambda i, *_: i < rounds, lambda i, *v: (i + 1, *step(*v)), (nnc.asarray(0), *first))
    return found[1:]


def scanned(rounds: int, step: Step, *first: Any) -> tuple[Any, ...]:
    """The same by a loop of known length."""
    last, _ = nnc.scan(lambda v, _: (tuple(step(*v)), None), tuple(first), None, rounds)
    return tuple(last)


BY = pytest.mark.parametrize("again", [counted, scanned], ids=["while", "scan"])


def cumulated(xs: Any, reverse: bool = False) -> list[Any]:
    last, ys = nnc.scan(lambda c, x: (nnc.flip(c) * 0.5 + x, c * x), xs[0] * 0.0, xs, reverse=reverse)
    return [last, ys]
