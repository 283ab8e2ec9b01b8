"""`nnc run` and `nnc show`: models and arrays from files, and what is wrong with them in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.cli.conftest import Run
from tests.io.onnx.models import classifier


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """A folder with a model and its input, which is given."""
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(classifier().SerializeToString())
    x = np.random.default_rng(1).standard_normal((2, 1, 8, 8)).astype(np.float32)
    np.save("x.npy", x)
    np.savez("all.npz", x=x)
    return x


@pytest.mark.parametrize("given", ["x.npy", "x=x.npy", "all.npz"])
def test_run_writes_what_the_model_computes(run: Run, files: np.ndarray, given: str) -> None:
    result = run("run", "model.onnx", "--input", given, "--out", "y.npz", "--repeat", "3", "--device", "cpu:0")
    assert result.exit_code == 0, result.output
    assert "logits: float32[2, 3]" in result.output and "ms a call, the median of 3" in result.output
    expected = ReferenceEvaluator(classifier()).run(None, {"x": files})[0]
    np.testing.assert_allclose(np.load("y.npz")["logits"], expected, rtol=1e-4, atol=1e-5)


def test_show_lists_what_there_is(run: Run, files: np.ndarray) -> None:
    result = run("show", "model.onnx", "--size", "batch=4")
    assert result.exit_code == 0, result.output
    for text in ("[batch, 1, 8, 8]", "MaxPool", "6 parameters of 243 numbers", "memory for batch = 4: peak"):
        assert text in result.output


@pytest.mark.parametrize(("arguments", "says"), [
    (("run", "model.onnx"), "the input 'x' of model.onnx is missing"),
    (("run", "model.onnx", "--input", "z=x.npy"), "no input 'z'"),
    (("run", "model.onnx", "--input", "x.npy", "--input", "x.npy"), "one array too many"),
    (("run", "model.onnx", "--input", "model.onnx"), "cannot read arrays from 'model.onnx'"),
    (("run", "model.onnx", "--input", "absent.npy"), "cannot read arrays from 'absent.npy'"),
    (("run", "x.npy", "--input", "x.npy"), "is no ONNX model"),
    (("run", "model.onnx", "--input", "x.npy", "--out", "absent/y.npz"), "cannot write 'absent/y.npz'"),
    (("run", "model.onnx", "--input", "x.npy", "--device", "gpu:7"), "gpu"),
    (("show", "model.onnx", "--size", "batch"), "expected NAME=N"),
])  # fmt: skip
def test_mistakes_are_said_in_one_line(run: Run, files: np.ndarray, arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1 and says in result.output and "Traceback" not in result.output
