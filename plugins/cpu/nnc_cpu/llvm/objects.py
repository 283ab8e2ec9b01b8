"""Object code of general nests: made once for a machine, and read from the disk from then on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib import import_module
from importlib.resources import files
from typing import NamedTuple

from nnc_core.base.disk_cache import disk_cache, key_of
from nnc_core.base.dtype import DTYPES
from nnc_core.base.loopnest import Access, Instruction, Stage
from nnc_core.codegen import GeneralNest
from nnc_cpu.llvm.compiler import HostCompiler
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.outer import TaskShape
from nnc_cpu.llvm.render import render

CACHE = "machine-code"
"""The name of the cache on disk."""
WRITERS = ("nnc_core.base", "nnc_core.codegen", "nnc_cpu")
"""The packages that decide what the text of a kernel is."""
_DTYPES = {dtype: name for name, dtype in DTYPES.items()}


class ObjectCode(NamedTuple):
    """A kernel's object code, the name of its function, and how its work is divided."""

    name: str
    shape: TaskShape
    code: bytes

    def packed(self) -> bytes:
        """The code behind a line that says the shape."""
        return json.dumps(self.shape).encode() + b"\n" + self.code


def unpacked(name: str, content: bytes) -> ObjectCode:
    """Undo `packed`."""
    head, _, code = content.partition(b"\n")
    return ObjectCode(name, TaskShape(*map(tuple, json.loads(head))), code)


class Objects:
    """Makes object code for one host; kept: on disk, for the next process."""

    def __init__(self, machine: HostCompiler, kept: bool) -> None:
        self.machine, self.kept = machine, kept

    def of(self, nest: GeneralNest, key: str) -> ObjectCode:
        """The object code of a nest whose key this is; NotSupportedError for what cannot be said."""
        name = f"kernel_{key}"
        return unpacked(name, self._kept_or(key, lambda: self._made(name, nest).packed()))

    def of_text(self, text: str) -> bytes:
        """The object code of a module that is written elsewhere."""
        return self.of_kind(text, lambda: text)

    def of_kind(self, what: object, write: Callable[[], str]) -> bytes:
        """The object code of a module that is written elsewhere, where it is not on disk: `what` says all that its
        text depends on, besides the code that writes it."""
        return self._kept_or(key_of(self._surroundings, repr(what).encode()), lambda: self.machine.compile(write()))

    def key(self, nest: GeneralNest) -> str:
        """A digest of the nest and of all that decides what becomes of it."""
        return key_of(self._surroundings, repr(structure(nest)).encode())

    def has(self, key: str) -> bool:
        """Tell whether there is object code of this key on disk, without reading it."""
        kept = disk_cache(CACHE) if self.kept else None
        return kept is not None and kept.has(key)

    def _kept_or(self, key: str, make: Callable[[], bytes]) -> bytes:
        kept = disk_cache(CACHE) if self.kept else None
        content = kept.read(key) if kept else None
        if content is None:
            content = make()
            if kept:
                kept.write(key, content)
        return content

    def _made(self, name: str, nest: GeneralNest) -> ObjectCode:
        text, shape = text_of(name, nest, self.machine)
        return ObjectCode(name, shape, self.machine.compile(text))

    @cached_property
    def _surroundings(self) -> bytes:
        return f"{self.machine.identity}, {source_digest()}".encode()


def text_of(name: str, nest: GeneralNest, machine: HostCompiler) -> tuple[str, TaskShape]:
    """The text of a module with the function of a nest, the same in every process, and how its work is divided."""
    declared: dict[str, None] = {}
    body, shape = render(name, nest, machine.target.lanes, machine.target.halves, declared, machine.target.scales)
    defined = definitions(declared)
    return "\n".join([*declared, *defined, body]), shape


def structure(nest: GeneralNest) -> tuple[object, ...]:
    """All of a nest that its code depends on, in numbers and strings: everything but the nest's name."""
    loops = nest.nest
    return (nest.lengths, _DTYPES[nest.index], [(_DTYPES[a.dtype], a.written) for a in loops.arguments], loops.axes,
            [_stage(stage) for stage in loops.stages])


def _stage(stage: Stage) -> tuple[object, ...]:
    reductions = [(r.kind, r.value, _DTYPES[r.dtype], r.factor) for r in stage.reductions]
    return stage.axes, [*map(_instruction, stage.body)], reductions, [*map(_instruction, stage.running)]


def _instruction(i: Instruction) -> tuple[object, ...]:
    return i.operation, _DTYPES[i.dtype], i.operands, i.literal, i.axis, i.access and _access(i.access)


def _access(access: Access) -> tuple[object, ...]:
    return access.argument, access.offset, [*map(tuple, access.subscripts)]


@cache
def source_digest() -> str:
    """A digest of the code that writes kernels: what another version of it has made is not used."""
    return key_of(*_sources())


def _sources() -> Iterator[bytes]:
    for package in WRITERS:
        places = [files(import_module(package))]
        while places:
            for file in sorted(places.pop().iterdir(), key=lambda file: file.name):
                if file.is_dir() and file.name != "__pycache__":
                    places.append(file)
                elif file.name.endswith((".py", ".pyc")):
                    yield file.name.encode()
                    yield file.read_bytes()
