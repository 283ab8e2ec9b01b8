"""Every case that comes with ONNX passes, or stands here with the reason."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

import nnc_core as nnc
from nnc_core.io import load_onnx
from tests.io.onnx.backend_cases import Case, all_cases, check_same

pytestmark = pytest.mark.filterwarnings("ignore:the model gives texts")

DRAWN = "random numbers: no two runtimes draw the same ones"
OTHER_VALUES = {
    "test_bernoulli": DRAWN, "test_bernoulli_expanded": DRAWN, "test_bernoulli_double": DRAWN,
    "test_bernoulli_double_expanded": DRAWN, "test_bernoulli_seed": DRAWN, "test_bernoulli_seed_expanded": DRAWN,
    "test_training_dropout": DRAWN, "test_training_dropout_default": DRAWN,
    "test_training_dropout_default_mask": DRAWN, "test_training_dropout_mask": DRAWN,
    "test_attention_4d_causal_fp16_expanded": "half a unit in the last place of float16, step by step as written",
}  # fmt: skip
"""Cases whose values differ."""


def failure(case: Case, compiled: bool) -> str | None:
    """What is wrong with a case's results; None where nothing is."""
    try:
        module = load_onnx(case.model)
        if compiled:
            module.hybridize()
        for given, wanted in case.data:
            results = module(*given)
            results = results if isinstance(results, tuple) else (results,)
            assert len(results) == len(wanted)
            for found, expected in zip(results, wanted, strict=True):
                check_same(found, expected, case.rtol, case.atol)
    except (AssertionError, nnc.Error) as error:
        return f"{type(error).__name__}: {error}"
    return None


def unexpected(cases: Iterable[Case], compiled: bool) -> list[str]:
    """A line for each case that fails and is not listed."""
    found = []
    for case in cases:
        what = failure(case, compiled)
        if what is not None and not (case.name in OTHER_VALUES and what.startswith(AssertionError.__name__)):
            found.append(f"{case.name} ({case.stratum}): {what}")
    return found


def report(found: list[str]) -> None:
    assert not found, f"{len(found)} cases:\n" + "\n".join(found)


def test_cases_eagerly() -> None:
    report(unexpected(all_cases(), compiled=False))


def test_a_sample_of_cases_compiled(seed: int) -> None:
    report(unexpected(random.Random(seed).sample(all_cases(), 150), compiled=True))


@pytest.mark.slow
def test_cases_compiled() -> None:
    report(unexpected(all_cases(), compiled=True))


@pytest.mark.filterwarnings("ignore:det has no kernel")  # linear algebra, announced
@pytest.mark.parametrize("count", [20, pytest.param(None, marks=pytest.mark.slow)])
def test_cases_compiled_on_opencl(seed: int, count: int | None) -> None:
    device = next((d for d in nnc.devices() if d.id.startswith("opencl:")), None)
    if device is None:
        pytest.skip("there is no OpenCL device")
    cases = all_cases()
    with nnc.use_device(device.id):
        report(unexpected(cases if count is None else random.Random(seed).sample(cases, count), compiled=True))


def test_what_is_listed_is_there() -> None:
    names = {case.name for case in all_cases()}
    assert names >= OTHER_VALUES.keys()
    assert all(OTHER_VALUES.values())
