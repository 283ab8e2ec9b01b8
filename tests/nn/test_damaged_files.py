"""Files of networks that are not whole, or are not what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnc_core import nn
from nnc_core.base.errors import (
    Error,
    FileFormatError,
    ShapeError,
    StateError,
)
from nnc_core.io import (
    MissingFileError,
    load_arrays,
    load_module,
    load_weights,
    module_file,
    save_arrays,
    save_module,
    save_weights,
)
from tests.io.edits import edits
from tests.nn.saved_models import functional, residual
from tests.support import same


# ---- files that are not whole
@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_module(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), tmp_path / "m", {"note": "hello"})
    return tmp_path / "m"


def test_metadata_are_kept(saved: Path) -> None:
    arrays, metadata = load_arrays(saved)
    assert metadata["note"] == "hello" and set(arrays) == {"0.weight", "0.bias"}


def rewritten(path: Path, change: Any) -> None:
    arrays, metadata = load_arrays(path)
    description = json.loads(metadata["nnc.module"])
    given = change(description)
    save_arrays(path, arrays, {"nnc.module": json.dumps(description if given is None else given)})


@pytest.mark.parametrize("change, words", [
    (lambda d: d.update(version=99), "its version is 99, this nnc reads up to 1"),
    (lambda d: d.update(version=0), "its version is 0, this nnc reads up to 1"),
    (lambda d: d.update(version=True), "has True for 'version'"),
    (lambda d: d["modules"][0].update({"class": "NoSuch"}), "no class 'NoSuch'"),
    (lambda d: d["modules"][0].update({"class": "register"}), "no class 'register'"),
    (lambda d: d["modules"][0].update({"class": "os.Linear"}), r"no class 'os\.Linear'"),
    (lambda d: d["modules"][0].update({"class": "zoo.blocks.Sequential"}), "no class 'zoo.blocks.Sequential'"),
    (lambda d: d["modules"][0].update({"class": "Unmatched"}), "'Unmatched' is no class of modules"),
    (lambda d: d["modules"][0].update(args=5), "the module Linear has 5 for 'args'"),
    (lambda d: d.update(root=5), "module 5 is not described"),
    (lambda d: d["modules"][2]["args"][0].update(module=2), "not described before"),
    (lambda d: d.update(modules=3), "has 3 for 'modules'"),
    (lambda d: d["modules"][0]["args"].append({"function": "eval"}), "no function 'eval'"),
    (lambda d: d["modules"][0]["args"].append({"initialiser": "_here"}), "no initialiser '_here'"),
    (lambda d: [1], r"the description is \[1\], expected an object"),
    (lambda d: d.update(frozen=["x"]), "'x' is no parameter"),
    (lambda d: d.update(evaluation=["x"]), "'x' is no part"),
    (lambda d: d["modules"][0].update(topology={}), "Linear is no network"),
])
def test_a_description_that_is_not_one(saved: Path, change: Any, words: str) -> None:
    rewritten(saved, change)
    with pytest.raises(FileFormatError, match=words) as caught:
        load_module(saved)
    assert str(saved) in str(caught.value)


@pytest.mark.parametrize("make", [functional, residual, lambda: nn.palettise(nn.Linear(16, 16), bits=4)])
def test_every_edit_of_a_description_is_loaded_or_one_clear_error(make: Any, tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    save_module(make(), path)
    arrays, metadata = load_arrays(path)
    texts: list[str] = []
    monkeypatch.setattr(module_file, "load_arrays", lambda path: (dict(arrays), {"nnc.module": texts[-1]}))
    found = list(edits(json.loads(metadata["nnc.module"])))
    refused = 0
    for what, edited in found[:: 1 + len(found) // 200]:
        texts.append(json.dumps(edited))
        try:
            load_module(path)
        except Error as error:
            refused += 1
            assert str(path) in str(error), what
    assert refused > 50
    for text in ("", "{", "null", "[" * 9999):
        texts.append(text)
        with pytest.raises(FileFormatError, match="the description is"):
            load_module(path)


def test_weights_of_another_program_are_refused(tmp_path: Path) -> None:
    """Of a square layer the shapes would say nothing: PyTorch's would be loaded transposed."""
    path, model = tmp_path / "w", nn.Linear(2, 2)
    before = model.state_dict()
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    safetensors_numpy.save_file(nn.to_pytorch_state(model), path)
    for mapped in (False, True):
        with pytest.raises(FileFormatError, match=r"(?s)was not written by nnc.*from_pytorch_state.*load_state_dict"):
            load_weights(model, path, mapped=mapped)
    np.testing.assert_array_equal(model.state_dict()["weight"], before["weight"])
    again = nn.Linear(2, 2)
    nn.from_pytorch_state(again, load_arrays(path)[0])
    same(again.weight.read(), model.weight.read())


def test_arguments_that_do_not_fit_and_classes_that_are_not_here(saved: Path) -> None:
    rewritten(saved, lambda d: d["modules"][0]["args"].extend([True, 1, 2]))
    with pytest.raises(StateError, match="m': Linear cannot be made with the arguments in the file"):
        load_module(saved)
    save_module(residual(), saved)
    rewritten(saved, lambda d: d["modules"][-1].update(registered="elsewhere.Block"))
    with pytest.raises(StateError, match=r"nothing is registered as 'elsewhere.Block'(.|\n)*import the module"):
        load_module(saved)


def test_weights_that_do_not_fit_the_description(saved: Path) -> None:
    arrays, metadata = load_arrays(saved)
    save_arrays(saved, arrays | {"0.weight": np.ones((2, 2), np.float32)}, metadata)
    with pytest.raises(ShapeError, match=r"'0.weight' has shape"):
        load_module(saved)
    save_arrays(saved, {"0.weight": arrays["0.weight"]}, metadata)
    with pytest.raises(StateError, match=r"missing 0.bias"):
        load_module(saved)


def test_damaged_foreign_and_missing_files(saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    for damaged in (content[:-1], content[:-4] + bytes(4), b"", b"hello"):
        saved.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            load_module(saved)
    save_weights(nn.Linear(2, 2), saved)
    with pytest.raises(FileFormatError, match=r"module: it is a safetensors file without a module(.|\n)*load_weights"):
        load_module(saved)
    with pytest.raises(MissingFileError):
        load_module(tmp_path / "nothing")
