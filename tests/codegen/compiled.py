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
from nnc_core.codegen import C99, GeneralNest, general, render_program

Values = np.ndarray[Any, Any]
Runner = Callable[[str, Sequence[Values]], None]
FLAGS = ["-std=c99", "-O2", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-shared", "-fPIC"]


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_c99(nests: Mapping[str, LoopNest], folder: Path) -> Runner:
    """One shared library of all nests; the result runs one by its key."""
    library, names = _library(nests, folder)

    def run(key: str, arrays: Sequence[Values]) -> None:
        _call(library[names[key]], [array.ctypes.data for array in arrays], nests[key].points)

    return run


def compile_general(nests: Mapping[str, LoopNest], folder: Path) -> tuple[Runner, int]:
    """One shared library of the general nests of all nests, and their number."""
    made = {key: general(nest) for key, nest in nests.items()}
    library, names = _library({str(nest): nest for nest, _ in made.values()}, folder)

    def run(key: str, arrays: Sequence[Values]) -> None:
        nest, numbers = made[key]
        given = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        pointers = [*(array.ctypes.data for array in arrays), ctypes.addressof(given)]
        _call(library[names[str(nest)]], pointers, nests[key].points)

    return run, len(names)


def _library(nests: Mapping[str, LoopNest | GeneralNest], folder: Path) -> tuple[Any, dict[str, str]]:
    """The loaded library, and the names of the kernels in it."""
    command = compiler()
    assert command is not None, "ask compiler() first"
    names = {key: f"kernel_{place}" for place, key in enumerate(nests)}
    source, library = folder / "nests.c", folder / "nests.so"
    source.write_text(render_program({names[key]: nest for key, nest in nests.items()}, C99))
    arguments = [command, *FLAGS, str(source), "-o", str(library), "-lm"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library)), names


def _call(kernel: Any, addresses: Sequence[int], points: int) -> None:
    pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
    half = points // 2  # two calls, as a caller that splits the work makes them
    for begin, end in ((half, points), (0, half)):
        kernel(pointers, ctypes.c_int64(begin), ctypes.c_int64(end))
