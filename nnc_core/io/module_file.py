"""Modules on disk: weights alone, or the network and its weights in one file.

Both are safetensors files that hold parameters and buffers by their names in `state_dict()`, so that other programs
can read them.  A module is described by JSON under the key `nnc.module`: the names of classes and the arguments of
their constructors, by which it is made again; no code is stored, and none but that of nnc and of what is registered
(`@nn.register`) runs when a file is loaded.  The file's checksum covers it all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Any

from nnc_core.base.errors import Error, FileFormatError, StateError
from nnc_core.base.fields import parsed
from nnc_core.io.checkpoint import Array, load_arrays, read_file, save_arrays
from nnc_core.io.graph_reader import refused
from nnc_core.io.mapped_arrays import map_file
from nnc_core.io.module_reader import ModuleReader
from nnc_core.io.module_writer import ModuleWriter, plain_attributes
from nnc_core.nn import Module
from nnc_core.nn.layers.checks import title
from nnc_core.nn.tree import walk
from nnc_core.nn.weights.unmatched import Unmatched, fitted
from nnc_core.values.arguments import located
from nnc_core.values.modes import use_device
from nnc_core.values.state import load_state

Path = str | os.PathLike[str]
_KEY = "nnc.module"
_FOREIGN = ("nn.from_pytorch_state(module, nnc.io.load_arrays(path)[0]) for a file of PyTorch, whose linear and "
            "convolution weights are transposed; module.load_state_dict(...) of the same if they are as nnc's")
ARGUMENT = "argument/"
"""Arrays whose names begin so are arguments of constructors, not weights."""


# ---- weights
@located
def save_weights(module: Module, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write parameters and buffers by name; an old file stays until the new one is whole."""
    save_arrays(path, module.state_dict(), metadata)


@located
def load_weights(module: Module, path: Path, strict: bool = True, mapped: bool = False) -> Unmatched:
    """Read parameters and buffers into a module that has them, on the devices where they are.

    Nothing changes unless everything fits.  With strict=False what only one side has is left alone, and named in the
    result.  A file that `save_module` wrote will do.  With mapped=True the weights stay in the file, as `map_arrays`
    says, where their device computes in the host's memory: nothing is read until it is used, updates go to memory of
    their own, never to the file, and the checksum is not looked at.

    Raises FileFormatError for a file that nnc did not write, whose weights may be laid out otherwise (PyTorch's are),
    StateError for names that are missing or unexpected, ShapeError and DTypeError for arrays that are not like those of
    the module, and what `load_arrays` raises.
    """
    stored = (map_file if mapped else read_file)(path)
    if not stored.is_ours:
        raise FileFormatError(f"{os.fspath(path)!r} was not written by nnc, so that nothing says how its weights are "
                              "laid out", hint=_FOREIGN)
    arrays = only_weights(stored.arrays)
    cells, arrays, found = fitted(module.cells(), arrays, strict)
    load_state(cells, arrays, f"{os.fspath(path)!r} for {type(module).__name__}", keep=mapped)
    return found


def only_weights(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Without what are arguments of constructors."""
    return {name: a for name, a in arrays.items() if not name.startswith(ARGUMENT)}


# ---- networks
@located
def save_module(module: Module, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write a network and its weights to one file; an old one stays until the new one is whole.

    What is part of the file: how modules were constructed, what they share, weights and buffers, which are in
    evaluation and which parameters are frozen; not hooks, gradients, and whether it was compiled.  The module is made
    again from the description before anything is written, on the current device.

    Raises NotSupportedError, naming the module, for classes and functions that are not registered, StateError for a
    module that was changed after it was made in a way that its constructor does not tell, and what `save_arrays` does.
    """
    writer = ModuleWriter()
    description = writer.describe(module)
    _check_description(module, description, writer.arrays)
    text = json.dumps(description, separators=(",", ":"))
    save_arrays(path, module.state_dict() | writer.arrays, {**(metadata or {}), _KEY: text})


@located
def load_module(path: Path, *, device: Any = None) -> Any:
    """The network that `save_module` wrote, on a device, by default the current one.

    Raises MissingFileError for a missing file, FileFormatError for one that is damaged, truncated, of a later version
    or no such file, and StateError where a class is not registered here.
    """
    arrays, metadata = load_arrays(path)
    if _KEY not in metadata:
        raise refused(path, "it is a safetensors file without a module",
                      "read it with load_weights(module, path) or load_arrays", "a module")
    with nullcontext() if device is None else use_device(device):
        try:
            module = ModuleReader(parsed(metadata[_KEY], "the description"), arrays).module()
        except MemoryError:
            raise
        except Error as error:
            raise type(error)(f"{os.fspath(path)!r}: {error.message}", hint=error.hint) from error
        except Exception as error:  # constructors may fail in any way on arguments that no program gave them
            raise FileFormatError(f"{os.fspath(path)!r}: its description is not what save_module writes: {error!r}",
                                  hint="restore the file from a copy or save it again") from error
        load_state(module.cells(), only_weights(arrays), f"{os.fspath(path)!r}")
    return module


# ---- what a constructor does not tell
def _check_description(module: Module, description: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Raise unless the description makes the same module again: without drawing weights where that will do."""
    with suppress(Exception), use_device("null"):  # constructors that look at values need another device
        return _check_same(module, ModuleReader(description, arrays).module())
    return _check_same(module, ModuleReader(description, arrays).module())


def _check_same(module: Module, again: Module) -> None:
    """Raise StateError unless the module made again has the same parts, settings, parameters and buffers."""
    parts, others = ({p.path: p.module for p in walk(m)} for m in (module, again))
    for path, part in parts.items():
        other = others.get(path)
        if type(other) is not type(part):
            raise _changed(path, part, f"it is not there, or {type(other).__name__}, when constructed again")
        _check_settings(path, part, other)
    for path in others.keys() - parts.keys():
        raise _changed(path, others[path], "it was removed after construction")
    _check_cells(module, again)


def _check_settings(path: str, part: Any, other: Any) -> None:
    mine, theirs = plain_attributes(part), plain_attributes(other)
    for name in mine.keys() | theirs.keys():
        a, b = mine.get(name, "nothing"), theirs.get(name, "nothing")
        if a != b and not (a != a and b != b):
            raise _changed(path, part, f"its {name} is {a!r}, constructed again it would be {b!r}")


def _check_cells(module: Module, again: Module) -> None:
    mine, theirs = module.cells(), again.cells()
    for name in [*mine, *theirs]:
        a, b = mine.get(name), theirs.get(name)
        if a is None or b is None or a.spec != b.spec or type(a) is not type(b):
            said = [f"{c.spec}" if c is not None else "nothing" for c in (a, b)]
            raise _changed("", module, f"its {name} is {said[0]}, constructed again it would be {said[1]}")


def _changed(path: str, part: Any, what: str) -> StateError:
    return StateError(f"{path + ': ' if path else ''}{what}", operator=title(part),
                      hint="a file holds the arguments of constructors: construct it as it is, define "
                           "constructor_arguments(self), or save_weights only")
