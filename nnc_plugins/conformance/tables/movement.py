"""Cases of operators that move elements: views, padding, joining."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType, boolean, is_float, is_storage
from nnc_plugins.conformance.case import LARGE, MOVED, Case, arrays, specials


def _move(x: tuple[int, ...], **attributes: Hashable) -> Case:
    """An input of shape `x`."""
    shown = ", ".join(f"{name} {value}" for name, value in attributes.items())
    return Case(f"{x} {shown}", arrays(x), MOVED, attributes, smooth=True)


def _special(x: tuple[int, ...], **attributes: Hashable) -> Case:
    """NaN and infinities, which are moved like any other number."""
    return Case("specials", specials(x), dt.FLOATS, attributes)


def _pads() -> list[Case]:
    def padded(shape: tuple[int, ...], low: Any, high: Any, interior: Any) -> Case:
        named = {"low": low, "high": high, "interior": interior, "value": 0}
        return Case(f"{shape} {low} {high} {interior}", arrays(shape), MOVED, named, smooth=True)

    around = {"low": (1, 0), "high": (0, 2), "interior": (0, 1)}
    return [
        padded((3, 4), (1, 0), (2, 3), (0, 0)), padded((3, 4), (0, 2), (1, 0), (1, 2)),
        padded((), (), (), ()),
        padded((0, 2), (1, 0), (2, 1), (3, 1)), padded((2, 3), (0, 0), (0, 0), (0, 0)),
        padded((1,), (2,), (1,), (5,)),
        padded((2, 0, 3), (0, 0, 1), (0, 0, 1), (1, 1, 1)),
        Case("with a number", arrays((2, 3)), MOVED, lambda dtype: {**around, "value": _filling(dtype)},
             smooth=True),
        Case("with -inf", arrays((2, 3)), dt.FLOATS, {**around, "value": -np.inf}),
        Case("with NaN", arrays((2, 3)), dt.FLOATS, {**around, "value": np.nan}),
        padded(LARGE, (1, 0), (0, 2), (0, 0)), _special((2, 3), **around, value=0),
    ]  # fmt: skip


def _filling(dtype: DType) -> float | int | bool:
    return True if dtype == boolean else 1 if is_storage(dtype) else 1.5 if is_float(dtype) else 7


def _slice(shape: tuple[int, ...], start: Any, stop: Any, step: Any) -> Case:
    return _move(shape, start=start, stop=stop, step=step)


def _update(shape: tuple[int, ...], value: tuple[int, ...], start: Any, step: Any) -> Case:
    attributes = {"start": start, "step": step}
    return Case(f"{value} into {shape} from {start} by {step}", arrays(shape, value), MOVED, attributes,
                smooth=True)


def _concat(axis: int, *shapes: tuple[int, ...]) -> Case:
    return Case(f"{shapes} along {axis}", arrays(*shapes), MOVED, {"axis": axis}, smooth=True)


_UNCHANGED = [_move((3, 4)), _move(()), _move((0, 2)), _move(LARGE), _special((3, 5))]

CASES: dict[str, list[Case]] = {
    **dict.fromkeys(("copy", "identity", "stop_gradient"), _UNCHANGED),
    "reshape": [
        _move((3, 4), shape=(2, 6)), _move((3, 4), shape=(12,)), _move((6,), shape=(1, 2, 1, 3)),
        _move((1, 1), shape=()),
        _move((), shape=(1, 1)), _move((0, 4), shape=(2, 0, 3)), _move((2, 3), shape=(2, 3)),
        _move((4, 1, 3), shape=(4, 3)), _move(LARGE, shape=LARGE[::-1]), _special((3, 4), shape=(2, 6)),
    ],
    "permute": [
        _move((3, 4), axes=(1, 0)), _move((2, 3, 4), axes=(2, 0, 1)), _move((2, 3, 4), axes=(0, 1, 2)),
        _move((), axes=()), _move((0, 2), axes=(1, 0)), _move((1, 5, 1, 2), axes=(3, 2, 1, 0)),
        _move(LARGE, axes=(1, 0)), _special((3, 4), axes=(1, 0)),
    ],
    "broadcast_to": [
        _move((3, 1), shape=(3, 4)), _move((4,), shape=(2, 3, 4)), _move((), shape=(2, 2)),
        _move((1, 3), shape=(0, 3)),
        _move((2, 1, 3), shape=(2, 4, 3)), _move((2, 3), shape=(2, 3)), _move((), shape=()),
        _move(LARGE[1:], shape=LARGE), _special((1, 5), shape=(2, 5)),
    ],
    "slice": [
        _slice((5, 6), (1, 0), (4, 6), (1, 1)), _slice((5, 6), (0, 1), (5, 6), (2, 3)),
        _slice((7,), (2,), (2,), (1,)),
        _slice((7,), (6,), (7,), (5,)), _slice((), (), (), ()), _slice((0, 3), (0, 1), (0, 3), (1, 2)),
        _slice((4, 4), (0, 0), (4, 4), (1, 1)), _slice((2, 3, 8), (1, 0, 1), (2, 3, 8), (1, 2, 4)),
        _slice(LARGE, (1, 0), LARGE, (1, 2)), _special((5, 6), start=(0, 1), stop=(5, 6), step=(2, 3)),
    ],
    "pad": _pads(),
    "flip": [
        _move((3, 4), axes=(0,)), _move((3, 4), axes=(0, 1)), _move((2, 3, 4), axes=(1,)),
        _move((3,), axes=()),
        _move((), axes=()), _move((0, 2), axes=(0, 1)), _move(LARGE, axes=(0, 1)), _special((3, 4), axes=(1,)),
    ],
    "concat": [
        _concat(0, (2, 3), (1, 3), (4, 3)), _concat(1, (2, 3), (2, 1)), _concat(0, (3,)),
        _concat(0, (0, 2), (3, 2), (0, 2)),
        _concat(2, (2, 1, 3), (2, 1, 2)), _concat(0, (0,), (0,)), _concat(1, (2, 2), (2, 0), (2, 3)),
        _concat(1, LARGE, (LARGE[0], 3)), Case("specials", specials((2, 3), (1, 3)), dt.FLOATS, {"axis": 0}),
    ],
    "update_slice": [
        _update((5, 6), (2, 3), (1, 2), (1, 1)), _update((5, 6), (2, 3), (1, 0), (3, 2)),
        _update((4,), (4,), (0,), (1,)),
        _update((4,), (0,), (2,), (1,)), _update((), (), (), ()), _update((3, 0), (2, 0), (0, 0), (2, 1)),
        _update((7, 2), (3, 1), (0, 1), (3, 4)), _update(LARGE, (128, 259), (1, 0), (2, 1)),
        Case("specials", specials((5, 6), (2, 3)), dt.FLOATS, {"start": (1, 2), "step": (1, 1)}),
    ],
    "transfer": [
        Case(f"{shape}", arrays(shape), MOVED, {"source": "here:0", "target": "there:0"}, smooth=True)
        for shape in ((3, 4), (), (0, 2))
    ],
}  # fmt: skip
