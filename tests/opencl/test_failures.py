"""Meanings of the driver's statuses, and what is told of code that it does not build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

cl = pytest.importorskip("pyopencl")

from nnc_core.base.command import Command  # noqa: E402
from nnc_core.base.dtype import float32, int64  # noqa: E402
from nnc_core.base.errors import DeviceFailureError, DeviceLostError, DeviceMemoryError  # noqa: E402
from nnc_core.base.layout import Layout  # noqa: E402
from nnc_opencl import programs  # noqa: E402
from nnc_opencl.failure import failure_of_code  # noqa: E402
from tests.opencl.cases import Case  # noqa: E402
from tests.opencl.grouped import grouped  # noqa: E402

if TYPE_CHECKING:
    from nnc_opencl.device import OpenCLDevice


@pytest.mark.parametrize(("name", "meaning"), [
    ("DEVICE_NOT_AVAILABLE", DeviceLostError), ("INVALID_CONTEXT", DeviceLostError),
    ("OUT_OF_HOST_MEMORY", DeviceMemoryError), ("INVALID_VALUE", DeviceFailureError),
])
def test_a_status_has_its_class(name: str, meaning: type[Exception]) -> None:
    error = failure_of_code("launching", getattr(cl.status_code, name), "opencl:3")
    assert type(error) is meaning and error.device == "opencl:3" and name in error.message


MATRIX = np.ones((64, 64), np.float32)
LIBRARY = {
    "a product": Case("matmul", (MATRIX, MATRIX), (False, False)).command,
    "argsort": Command("argsort", (0, False), (Layout.packed((100,), float32),), (Layout.packed((100,), int64),)),
}


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("built", ["refused", "empty"])
def test_library_code_that_is_not_built_leaves_its_source(device: OpenCLDevice, name: str, built: str, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL after a crash of its compiler has a program without kernels on disk."""
    fresh, real = grouped(device), programs.built
    sources = []

    def spoilt(source: str, *others: object) -> object:
        sources.append(source)
        return real(source + "wrong here;" if built == "refused" else "", *others)  # type: ignore[arg-type]

    monkeypatch.setattr(programs, "built", spoilt)
    monkeypatch.setenv("NNC_CACHE_FOLDER", str(tmp_path))
    command = LIBRARY[name]
    [backend] = fresh.backends(command.name)
    with pytest.raises(DeviceFailureError, match=f"cannot build the kernel of {name}") as caught:
        backend.prepare(command)
    found = re.search(r"driver's words: ([^)]+)\)", caught.value.message)
    assert found is not None and found[1].startswith(str(tmp_path)) and sources[-1] in Path(found[1]).read_text()
