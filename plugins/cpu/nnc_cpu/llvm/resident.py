"""Machine code of the plugin's own, written by hand in LLVM's language: loaded once, and never unloaded."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, host
from nnc_cpu.llvm.objects import Objects


def load_for_ever(package: str, file: str, names: Iterable[str], **words: Any) -> Mapping[str, int]:
    """Addresses of functions by name; `words` stand for others in the text."""
    text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
    for word, meant in words.items():
        text = text.replace(word, str(meant))
    machine = HostCompiler(host())
    module: LoadedModule = for_ever(machine.load([Objects(machine, kept=True).of_text(text)], names))
    return module.addresses


def for_ever(thing: Any) -> Any:
    """Keep something alive until the process has ended, whatever runs then: threads may still look at it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing
