"""The gradient of every public function of one array, against central differences; compiled it is the same."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import GradientError
from tests.tensors.recording.test_exported_functions import FUNCTIONS, KINDS, TAKE_ONE, tensors

STOPPED = {"batch_norm_training": "its moments are statistics", "const_arr": "a constant", "const_elt": "a constant",
           "stop_gradient": "its purpose"}  # fmt: skip
"""Functions that do not follow the gradient of all that they give."""
STEP = 1e-6


def weighted(name: str, x: nnc.Tensor) -> nnc.Tensor | None:
    """All that is smooth of what a function gives, as one number."""
    total: nnc.Tensor | None = None
    for k, y in enumerate(tensors(FUNCTIONS[name](x))):
        weights = np.cos(np.arange(y.size) + k).reshape(y.shape)
        if y.dtype.kind == "c":
            part = nnc.sum(nnc.real(y) * weights) + nnc.sum(nnc.imag(y) * np.sin(weights))
        elif y.dtype.kind == "f":
            part = nnc.sum(y * weights)
        else:
            continue
        total = part if total is None else total + part
    return total


def point(name: str, kind: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A place without ties and kinks, and a direction."""
    rng = np.random.default_rng(crc32(name.encode()))
    x = KINDS[kind][0](3).astype(np.float64) / 2
    return x + rng.uniform(-0.01, 0.01, x.shape), rng.normal(size=x.shape)


def slope(name: str, x: np.ndarray[Any, Any], direction: np.ndarray[Any, Any]) -> float | None:
    """None where nothing has a derivative: there is no float, or no number."""
    ends = [weighted(name, nnc.asarray(x + s * STEP * direction)) for s in (1, -1)]
    if any(end is None for end in ends):
        return None
    upper, lower = (float(end) for end in ends if end is not None)
    found = (upper - lower) / (2 * STEP)
    return found if np.isfinite(found) else None


@pytest.mark.parametrize(("name", "kind"), TAKE_ONE.items(), ids=TAKE_ONE)
@pytest.mark.filterwarnings("ignore:.* has no kernel", "ignore:.* runs operator by operator")
def test_it_is_the_slope(name: str, kind: str) -> None:
    x, direction = point(name, kind)
    wanted = slope(name, x, direction)
    if wanted is None or name in STOPPED:
        return
    gradient = nnc.grad(lambda x: weighted(name, x))
    try:
        found = gradient(nnc.asarray(x)).numpy()
    except GradientError as error:
        assert "no rule" in str(error) or "no derivative" in str(error), error
        return
    np.testing.assert_allclose(np.sum(found * direction), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nnc.jit(gradient)(nnc.asarray(x)).numpy(), found, rtol=1e-9, atol=1e-12)


def test_most_have_one() -> None:
    assert sum(slope(name, *point(name, kind)) is not None for name, kind in TAKE_ONE.items()) > 150
