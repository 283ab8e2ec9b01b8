"""In-place operators cast their result within its kind, as NumPy does, and refuse what would drop a part of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.dtype import DTYPES
from nnc_core.values.in_place_results import same_kind
from tests.tensors.faults import fails

KNOWN_TO_NUMPY = [d for d in DTYPES.values() if d.kind != "V" and d.name != "bfloat16"]


@pytest.mark.parametrize("target", KNOWN_TO_NUMPY, ids=str)
def test_the_rule_is_numpys(target: np.dtype[Any]) -> None:
    for source in KNOWN_TO_NUMPY:
        assert same_kind(source, target) is bool(np.can_cast(source, target, "same_kind")), source


def test_bfloat16_is_a_float() -> None:
    bf16 = DTYPES["bfloat16"]
    assert same_kind(DTYPES["float64"], bf16) and same_kind(bf16, DTYPES["float16"]) and same_kind(DTYPES["int8"], bf16)
    assert not same_kind(bf16, DTYPES["int64"])


OTHERS: list[tuple[str, Any]] = [
    ("float32", np.float64(2.5)), ("float32", np.array([0.1, 0.2])), ("int8", np.array([3, 4], np.int64)),
    ("complex64", np.complex128(1 + 2j)), ("float16", np.float32(0.3)), ("float32", [1.5, 2.5]),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "other"), OTHERS, ids=lambda x: str(getattr(x, "dtype", type(x).__name__)))
@pytest.mark.parametrize("deferred", [False, True])
def test_wider_numbers_are_cast(dtype: str, other: Any, deferred: bool) -> None:
    """What is computed in the wider dtype is rounded once."""
    start = np.array([1, 2], dtype)
    wanted = start.copy()
    wanted += other
    wanted *= other
    with nnc.deferred(deferred):
        x = y = nnc.asarray(start)
        x += nnc.asarray(other) if isinstance(other, np.ndarray) else other
        x *= other
    assert x is y and x.dtype == dtype
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_another_kind_is_refused(device: str) -> None:
    whole, small = nnc.asarray([1, 2]), nnc.asarray([1, 2], dtype="uint8")
    for target, other in ((whole, 0.5), (nnc.ones(2), 1j), (small, whole), (whole > 1, whole)):
        before = target._value
        with fails(TypeError, "another kind", "x = x + y"):
            target += other
        assert target._value is before
    with fails(TypeError, "another kind"):
        whole /= 2
    with fails(ValueError, "cannot take the place"):
        whole += nnc.ones((3, 2), dtype="int64")


@pytest.mark.parametrize("make", [nn.Parameter, nnc.Cell])
def test_state_is_cast_alike(device: str, make: Any) -> None:
    w = kept = make(nnc.ones(2))
    with nnc.no_grad():
        w -= np.array([0.5, 0.25])
    assert w is kept and w.dtype == nnc.float32 and w.tolist() == [0.5, 0.75]
    with fails(TypeError, "another kind"), nnc.no_grad():
        w += 1j


def test_a_cast_in_a_compiled_update(device: str) -> None:
    w = nnc.Cell(nnc.ones(2))

    @nnc.jit
    def step(g: nnc.Tensor) -> None:
        nonlocal w
        w -= g * np.float64(0.5)

    for _ in range(2):
        step(nnc.asarray(np.array([1.0, 2.0])))
    assert w.dtype == nnc.float32 and w.tolist() == [0.0, -1.0]
