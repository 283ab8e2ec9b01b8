"""Axes of padding that are gone through as one."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32
from nnc_core.base.layout import Layout
from nnc_core.codegen.interpret import interpret
from nnc_core.operator import OPERATORS
from nnc_core.operator.padding import with_merged_axes

CASES = {
    "channels last": ((2, 3, 4, 5), ((0, 0), (0, 0), (1, 2), (0, 0)), (0, 0, 0, 0), (6, 20)),
    "images": ((2, 3, 4), ((1, 0), (0, 0), (0, 0)), (0, 0, 0), (24,)),
    "the last axis": ((2, 3, 4), ((0, 0), (0, 0), (0, 3)), (0, 0, 0), (6, 4)),
    "every axis": ((2, 3), ((1, 1), (2, 0)), (0, 0), (2, 3)),
    "between neighbours": ((2, 3, 4), ((0, 0), (0, 1), (0, 0)), (0, 1, 0), (2, 3, 4)),
    "of one": ((1, 1, 3), ((0, 0), (2, 1), (0, 0)), (0, 0, 0), (1, 3)),
}


def padding(shape: tuple[int, ...], ends: tuple[tuple[int, int], ...], interior: tuple[int, ...]) -> Command:
    low, high = zip(*ends, strict=True)
    wanted = tuple([n + (n - 1) * k + a + b for n, k, (a, b) in zip(shape, interior, ends, strict=True)])
    layouts = [Layout.packed(x, float32) for x in (shape, wanted)]
    return Command("pad", (low, high, interior, 7.0), (layouts[0],), (layouts[1],))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_axes_that_stay_belong_to_the_one_before(case) -> None:
    shape, ends, interior, merged = case
    command = padding(shape, ends, interior)
    assert with_merged_axes(command).inputs[0].shape == merged
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = np.zeros(command.output.shape, np.float32)
    pad = OPERATORS["pad"]
    assert pad.nest is not None
    interpret(pad.nest(command), [y.reshape(-1).view(np.uint8) for y in (x, found)])
    np.testing.assert_array_equal(found, pad.reference(x, *command.attributes))


def test_axes_that_lie_apart_stay_apart() -> None:
    command = padding((2, 3, 4), ((0, 0), (1, 1), (0, 0)), (0, 0, 0))
    apart = Layout((2, 3, 4), float32, 0, (48, 4, 12))
    assert with_merged_axes(command._replace(inputs=(apart,))).inputs[0] == apart
