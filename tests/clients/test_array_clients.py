"""SciPy's and scikit-learn's functions with tensors give NumPy's values, as tensors, in eager and deferred mode."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDS_SCIKIT_LEARN = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")


def failures(module: str, mode: str, *names: str) -> tuple[int, dict[str, str]]:
    """The number of cases that a child process has run, and those that failed, with their reasons."""
    child = subprocess.run([sys.executable, "-m", "tests.clients.child", module, mode, *names], capture_output=True,
                           text=True, check=False, cwd=ROOT)
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout.splitlines()[-1])
    return len(found), {name: why for name, why in found.items() if why}


def test_a_sample_of_scipy() -> None:
    names = ("stats.skew", "special.logsumexp", "integrate.trapezoid", "optimize.rosen_der")
    assert failures("scipy_cases", "eager", *names) == (4, {})


@NEEDS_SCIKIT_LEARN
def test_a_sample_of_scikit_learn() -> None:
    assert failures("scikit_learn_cases", "eager", "StandardScaler", "r2_score", "train_test_split") == (3, {})


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eager", "deferred"])
def test_scipy(mode: str) -> None:
    count, failed = failures("scipy_cases", mode)
    assert count >= 80 and failed == {}


@pytest.mark.slow
@NEEDS_SCIKIT_LEARN
@pytest.mark.parametrize("mode", ["eager", "deferred"])
def test_scikit_learn(mode: str) -> None:
    count, failed = failures("scikit_learn_cases", mode)
    assert count >= 80 and failed == {}


def test_a_result_in_disguise_is_found() -> None:
    """What gives NumPy's arrays, or asks for them on the way, fails."""
    count, failed = failures("faulty_cases", "eager")
    assert count == 3
    assert failed["array"] == "ndarray instead of a tensor" and failed["detour"] == "1 conversions"
    assert failed["wrong"].startswith("[2.") and "is not" in failed["wrong"]
