"""Pretrained models of three domains give ONNX Runtime's values, and one of them is trained on.

Their packages are downloaded by version and hash, and the models taken out of them; nothing is installed.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.io import load_onnx

pytestmark = pytest.mark.slow
PACKAGES = Path(__file__).with_name("pretrained.txt")
MODELS = {  # what is in the package, and an input: dtype and shape
    "speech": ("speechmos/dnsmos_models/model_v8.onnx", {"input_1": (np.float32, (2, 900, 120))}),
    "text on pictures": ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
                         {"x": (np.float32, (1, 3, 48, 192))}),
    "orientation": ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                    {"x": (np.float32, (1, 3, 48, 192))}),
    "kinds of files": ("magika/models/standard_v3_3/model.onnx", {"bytes": (np.int32, (3, 2048))}),
}  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the packages contain."""
    folder = tmp_path_factory.mktemp("models")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest",
               str(folder), "-r", str(PACKAGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"the packages with models cannot be had: {done.stderr.strip()[-300:]}")
    for package in folder.glob("*.whl"):
        with zipfile.ZipFile(package) as content:
            content.extractall(folder, [n for n in content.namelist() if n.endswith(".onnx")])
    return folder


def drawn(inputs: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {name: rng.integers(0, 100, shape).astype(dtype) if np.dtype(dtype).kind == "i"
            else rng.standard_normal(shape).astype(dtype) for name, (dtype, shape) in inputs.items()}


def devices() -> Iterator[str]:
    yield "cpu:0"
    yield from [d.id for d in nnc.devices() if d.id.startswith("opencl:")][:1]


@pytest.mark.parametrize("domain", MODELS)
def test_values_of_onnx_runtime(models: Path, domain: str) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    name, inputs = MODELS[domain]
    given = drawn(inputs)
    expected = runtime.InferenceSession(models / name, providers=["CPUExecutionProvider"]).run(None, given)
    for device in devices():
        with nnc.use_device(device):
            module = load_onnx(models / name)
            for run in (module, module.hybridize()):
                results = run(**given)
                results = results if isinstance(results, tuple) else (results,)
                for found, wanted in zip(results, expected, strict=True):
                    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-5)


def test_one_trace_for_batches_from_one_to_eight(models: Path) -> None:
    name = MODELS["speech"][0]
    x = drawn({"x": (np.float32, (8, 900, 120))})["x"]
    module = load_onnx(models / name)
    whole = np.asarray(module(x))
    module.hybridize()
    for batch in range(1, 9):
        np.testing.assert_allclose(np.asarray(module(x[:batch])), whole[:batch], rtol=1e-4, atol=1e-5)
    assert module._compiled.traces == 2


def loss_of(module: Any, x: Any, y: Any) -> Any:
    return nnc.mean(nnc.square(module(x) - y))


def test_training_goes_on(models: Path) -> None:
    module = load_onnx(models / MODELS["speech"][0])
    x = drawn({"x": (np.float32, (4, 900, 120))})["x"]
    wanted = np.asarray(module(x)) + np.float32([[0.5], [-0.5], [1], [0]])
    gradients = nn.value_and_grad(module, partial(loss_of, module))
    step = optim.make_step(gradients, optim.Adam(module.named_parameters(), 1e-3))
    losses = [float(step(nnc.asarray(x), nnc.asarray(wanted))) for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]
