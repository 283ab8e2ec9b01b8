"""Descriptors of cuDNN's backend: attributes by number, each with the kind of its elements and their count."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ctypes import byref, c_bool, c_double, c_float, c_int, c_int64, c_size_t, c_void_p, create_string_buffer
from typing import Any, NamedTuple

from nnc_cuda.driver import CudaError


class ElementKind(NamedTuple):
    """A kind of elements: its number (CUDNN_TYPE_...), and how C has one."""

    number: int
    of_c: Any


HANDLE, DATA_TYPE, BOOLEAN = ElementKind(0, c_void_p), ElementKind(1, c_int), ElementKind(2, c_bool)
INT64, FLOAT, DOUBLE = ElementKind(3, c_int64), ElementKind(4, c_float), ElementKind(5, c_double)
POINTER, CONVOLUTION_MODE, HEURISTICS_MODE = ElementKind(6, c_void_p), ElementKind(7, c_int), ElementKind(8, c_int)
NUMERICAL_NOTE, POINTWISE_MODE, DESCRIPTOR = ElementKind(11, c_int), ElementKind(14, c_int), ElementKind(15, c_void_p)
REDUCTION_OPERATOR = ElementKind(18, c_int)
MESSAGE = 512
"""Bytes of what the library says about a failure."""


class Descriptor:
    """Something that the library describes, which goes with this, as do those that it names."""

    def __init__(self, functions: Any, kind: int) -> None:
        self.functions, self.handle, self._named = functions, c_void_p(), list[Descriptor]()
        check(functions, "cudnnBackendCreateDescriptor",
              functions.cudnnBackendCreateDescriptor(c_int(kind), byref(self.handle)))

    def set(self, attribute: int, kind: ElementKind, *values: Any) -> Descriptor:
        """Set an attribute's elements; other descriptors are kept."""
        self._named += [value for value in values if isinstance(value, Descriptor)]
        elements = (kind.of_c * len(values))(*[x.handle.value if isinstance(x, Descriptor) else x for x in values])
        check(self.functions, f"cudnnBackendSetAttribute of {attribute}", self.functions.cudnnBackendSetAttribute(
            self.handle, c_int(attribute), c_int(kind.number), c_int64(len(values)), byref(elements)))
        return self

    def done(self) -> Descriptor:
        """Let nothing more be set; CudaError where what was set makes no sense, or is not supported."""
        check(self.functions, "cudnnBackendFinalize", self.functions.cudnnBackendFinalize(self.handle))
        return self

    def values(self, attribute: int, kind: ElementKind, most: int) -> list[Any]:
        """The first elements of an attribute."""
        elements, count = (kind.of_c * most)(), c_int64()
        self._get(attribute, kind, most, count, byref(elements))
        return list(elements[: min(count.value, most)])

    def descriptors(self, attribute: int, kind: int, most: int) -> list[Descriptor]:
        """The first descriptors, of one kind, that an attribute has."""
        made = [Descriptor(self.functions, kind) for _ in range(most)]
        elements, count = (c_void_p * most)(*[one.handle.value for one in made]), c_int64()
        self._get(attribute, DESCRIPTOR, most, count, byref(elements))
        found = made[: min(count.value, most)]
        for one in found:
            one._named.append(self)
        return found

    def _get(self, attribute: int, kind: ElementKind, most: int, count: c_int64, elements: Any) -> None:
        check(self.functions, f"cudnnBackendGetAttribute of {attribute}", self.functions.cudnnBackendGetAttribute(
            self.handle, c_int(attribute), c_int(kind.number), c_int64(most), byref(count), elements))

    def __del__(self) -> None:
        if self.handle:
            with suppress(CudaError):
                check(self.functions, "cudnnBackendDestroyDescriptor",
                      self.functions.cudnnBackendDestroyDescriptor(self.handle))


def described(functions: Any, kind: int, *attributes: tuple[int, ElementKind, Sequence[Any]]) -> Descriptor:
    """A descriptor with its attributes."""
    made = Descriptor(functions, kind)
    for attribute, of, values in attributes:
        made.set(attribute, of, *values)
    return made.done()


def check(functions: Any, call: str, status: int) -> None:
    """CudaError for a status of the library other than success, with what it says."""
    if status:
        message = create_string_buffer(MESSAGE)
        functions.cudnnGetLastErrorString(message, c_size_t(MESSAGE))
        said = message.value.decode(errors="replace")
        raise CudaError(status, f"{call} fails with status {status} of cuDNN{': ' if said else ''}{said}")
