"""Settings are checked when they are set, each by its kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import KINDS, Settings
from nnc_core.base.errors import AttributeValueError, DeviceError

WRONG: dict[str, list[Any]] = {
    "deterministic": [1, "yes", None], "eager": [0, "no"], "check_indices": [1, "yes", None],
    "compile_at_once": [1, "yes", None], "check_nan": ["all", True, None, ["nan"]],
    "fallback": ["silent", True, None], "matmul_precision": ["half", 32, None],
    "implicit_compute": ["never", 0], "trace_limit": ["x", 1.5, -1, True, None],
    "fusion": ["off", 2, None], "memory_steps": ["x", -1, 1e9], "arena_limit": ["1 GiB", -1, 1e9, True],
    "threads": [0, -1, 1.5, True, "all", 1025], "autotune": ["2 s", -1, True, None, float("nan")],
    "cache_limit": ["1 GiB", -1, 1e9, True, None], "cache_folder": ["", 3, b"bytes"],
    "default_float": ["single float", 32, None, "int32", nnc.int32, "complex64", "nonsense", object()],
    "default_device": [1.5, "", 0, object()],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = nnc.config.as_dict()
    yield
    assert nnc.config.as_dict() == before


def test_each_setting_has_a_kind() -> None:
    assert set(KINDS) == {f.name for f in fields(Settings)} == set(WRONG)
    for name, default in nnc.config.as_dict().items():
        with nnc.config.using(**{name: default}):
            assert getattr(nnc.config, name) == default


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_nonsense_is_refused_when_it_is_set(name: str, value: Any) -> None:
    with pytest.raises(AttributeValueError, match=name):
        setattr(nnc.config, name, value)
    with pytest.raises(AttributeValueError, match=name), nnc.config.using(**{name: value}):
        pass


@pytest.mark.parametrize("kind", ["float64", nnc.float64, np.float64, np.dtype("float64")])
def test_dtypes_are_taken_however_they_are_written(kind: Any) -> None:
    with nnc.config.using(default_float=kind):
        assert nnc.config.default_float == "float64" and nnc.ones(2).dtype == nnc.float64
    with nnc.config.using(default_float=nnc.bfloat16):
        assert nnc.asarray(1.5).dtype == nnc.bfloat16


def test_numbers_of_numpy_and_specs_of_devices() -> None:
    with nnc.config.using(trace_limit=np.int64(3), deterministic=np.True_, default_device=nnc.devices()[0]):
        assert nnc.config.trace_limit == 3 and nnc.config.deterministic is True
        assert nnc.ones(1).device.id == nnc.devices()[0].id


def test_folders_are_paths_and_may_be_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with nnc.config.using(cache_folder="~/mine"):
        assert nnc.config.cache_folder == str(tmp_path / "mine")
    with nnc.config.using(cache_folder=tmp_path):
        assert nnc.config.cache_folder == str(tmp_path)


def test_an_empty_text_is_no_device() -> None:
    with pytest.raises(DeviceError, match="empty"), nnc.use_device(""):
        pass
    with pytest.raises(DeviceError, match="empty"):
        nnc.ones(2, device="")
