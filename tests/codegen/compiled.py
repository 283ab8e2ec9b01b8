"""Run nests through the C99 dialect and the system's C compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import C99, render_program

Values = np.ndarray[Any, Any]
Runner = Callable[[str, Sequence[Values]], None]
FLAGS = ["-std=c99", "-O2", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-shared", "-fPIC"]


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_c99(nests: Mapping[str, LoopNest], folder: Path) -> Runner:
    """One shared library of all nests; the result runs one by its key."""
    command = compiler()
    assert command is not None, "ask compiler() first"
    names = {key: f"kernel_{place}" for place, key in enumerate(nests)}
    source, library = folder / "nests.c", folder / "nests.so"
    source.write_text(render_program({names[key]: nest for key, nest in nests.items()}, C99))
    arguments = [command, *FLAGS, str(source), "-o", str(library), "-lm"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    loaded = ctypes.CDLL(str(library))

    def run(key: str, arrays: Sequence[Values]) -> None:
        kernel, points = loaded[names[key]], nests[key].points
        pointers = (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
        half = points // 2  # two calls, as a caller that splits the work makes them
        for begin, end in ((half, points), (0, half)):
            kernel(pointers, ctypes.c_int64(begin), ctypes.c_int64(end))

    return run
