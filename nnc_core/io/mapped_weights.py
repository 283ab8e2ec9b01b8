"""Weights by name as tensors in the memory of their file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nnc_core.functions.creation import stack_given
from nnc_core.io.checkpoint import Array
from nnc_core.io.mapped_arrays import map_arrays
from nnc_core.io.module_file import only_weights
from nnc_core.stacks import Stack
from nnc_core.values.arguments import located
from nnc_core.values.from_host import kept_value
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

Path = str | os.PathLike[str]


@located
def map_weights(path: Path, *, device: Any = None) -> MappedWeights:
    """The arrays of a safetensors file by name, as tensors of a device, by default the current one.

    Nothing but the file's header is read now.  Where the device computes in the host's memory a tensor's memory is the
    file, mapped read-only, which the operating system reads when elements are used; elsewhere a tensor is uploaded
    when it is first asked for.  Nothing is ever written to the file, which may be deleted or replaced by another of
    its name meanwhile (not overwritten in place, as `map_arrays` says); `load_arrays` checks its checksum.

    Raises MissingFileError for a missing file and FileFormatError for one that is damaged, truncated, of another
    format or with a dtype that nnc does not have.
    """
    arrays, metadata = map_arrays(path)
    return MappedWeights(only_weights(arrays), metadata, stack_given(device), os.fspath(path))


class MappedWeights(Mapping[str, Tensor]):
    """The result of `map_weights`.  `metadata`: the texts of the file."""

    def __init__(self, arrays: Mapping[str, Array], metadata: Mapping[str, str], stack: Stack, path: str) -> None:
        self._arrays, self._stack, self._path = arrays, stack, path
        self._values: dict[str, Value] = {}
        self.metadata = metadata

    def __getitem__(self, name: str) -> Tensor:
        """A new handle each time, since handles can be given other values."""
        value = self._values.get(name)
        if value is None:
            value = self._values.setdefault(name, kept_value(self._arrays[name], self._stack))
        return Tensor(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def why_copied(self, name: str) -> str | None:
        """The reason why a tensor has memory of its own; None where its memory is the file."""
        array, device = self._arrays[name], self._stack.device
        if device.adopt(array) is not None:
            return None
        if device.adopt(np.zeros(1, np.uint8)) is None:
            return f"{device.spec.id} does not compute in the host's memory"
        if not array.flags.aligned:
            return f"its place in the file is no multiple of the {array.dtype.alignment} bytes that {array.dtype} needs"
        return f"{device.spec.id} cannot compute with {array.dtype} as it is stored"

    def __repr__(self) -> str:
        return f"<{len(self)} weights mapped from {self._path!r} for {self._stack.device.spec.id}>"
