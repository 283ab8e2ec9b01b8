"""Memory shared with NumPy and, by DLPack, with other libraries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError, Error, ExchangeError, ProtocolError
from nnc_core.device import HostArray
from nnc_core.stacks import Stack
from nnc_core.type import admit_numpy
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Borrowed, Value

HOST = (1, 0)
"""DLPack's name of the host's memory."""


# ---- from others
def shared(x: Any, dtype: Any, stack: Stack) -> Tensor:
    """A tensor in the memory of a host array, or AttributeValueError."""
    try:
        host = np.asarray(x, None if dtype is None else admit_numpy(dtype), copy=False)
    except (ValueError, TypeError) as error:
        if isinstance(error, Error):
            raise
        raise needs_copy(f"{type(x).__name__}: {error}", stack) from None
    adopted = adopt(host, stack)
    if adopted is None:
        raise needs_copy(f"{host.dtype}{list(host.shape)} with strides {host.strides}", stack)
    return adopted


def adopt(host: HostArray, stack: Stack) -> Tensor | None:
    """A tensor in a host array's memory; None where the device cannot."""
    stack.type.admit(admit_numpy(host.dtype))
    array = stack.device.adopt(host)
    return None if array is None else Tensor(Borrowed(array, stack))


def needs_copy(what: str, stack: Stack) -> AttributeValueError:
    return AttributeValueError(f"the memory of this host array cannot be shared: {what}", operator="asarray",
                               device=stack.device.spec.id, hint="copy=None copies where it must")


def taken_over(x: Any, stack: Stack, copy: bool | None) -> Tensor | None:
    """A tensor of an array of another library on the same device, in its memory if `copy` is not True; None where it
    does not lie there."""
    array = None if stack.device.dlpack_device is None else stack.device.borrow(x)
    if array is None:
        return None
    stack.type.admit(array.dtype)
    if not copy:
        return Tensor(Borrowed(array, stack))
    duplicate = stack.engine.executor.duplicate(array)
    stack.device.default_stream.synchronize()  # its owner may write to it at once, on a stream of his own
    return Tensor(Value(duplicate, stack))


def imported(x: Any, copy: bool | None = None) -> HostArray:
    """Another library's array as NumPy sees it, in its own memory where that is the host's."""
    if isinstance(x, np.ndarray):
        return x
    if not hasattr(x, "__dlpack__"):
        raise ProtocolError(f"{type(x).__name__} has no __dlpack__", operator="from_dlpack",
                            hint="make the tensor with nnc.asarray")
    try:
        on_host = x.__dlpack_device__()[0] == HOST[0]
        return np.from_dlpack(x) if on_host else np.from_dlpack(x, device="cpu", copy=copy)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ExchangeError(f"{type(x).__name__} cannot be taken over: {error}", operator="from_dlpack",
                            hint="bring it to the host's memory first") from error


# ---- to others
def host_view(t: Tensor, dtype: Any = None) -> HostArray:
    """A tensor's own memory, read-only, or AttributeValueError."""
    view = _exposed(t)
    if view is None or (dtype is not None and np.dtype(dtype) != view.dtype):
        wanted = t.dtype if dtype is None else np.dtype(dtype)
        raise AttributeValueError(f"{t.spec} on {t.device.id} is no {wanted} in the host's memory without a copy",
                                  hint="copy=None")
    return view


def _exposed(t: Tensor) -> HostArray | None:
    value = t.realize()._value
    view = value.stack.device.expose(value.array)
    if view is not None:
        value.stack.device.default_stream.synchronize()
    return view


def to_dlpack(t: Tensor, stream: Any, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None,
              copy: bool | None) -> Any:
    """A capsule: a view only for those who can be told that it is read-only, since values never change."""
    device = t._value.stack.device
    if device.dlpack_device is not None and (dl_device is None or tuple(dl_device) == device.dlpack_device):
        return _lent(t, stream, max_version is not None and tuple(max_version) >= (1, 0), copy)
    if stream is not None or (dl_device is not None and tuple(dl_device) != HOST):
        asked = f"stream {stream}" if stream is not None else f"device {dl_device}"
        raise ExchangeError(f"tensors are handed out in the host's memory {HOST}, without a stream, not on {asked}",
                            operator="__dlpack__", device=t.device.id)
    knows_read_only = max_version is not None and tuple(max_version) >= (1, 0)
    view = None if copy or not knows_read_only else _exposed(t)
    if view is None and copy is False:
        raise _read_only(t)
    try:
        return (t.numpy() if view is None else view).__dlpack__(max_version=max_version)
    except BufferError as error:
        raise ExchangeError(f"{t.spec}: {error}", operator="__dlpack__", device=t.device.id,
                            hint="cast it with astype") from None


def _lent(t: Tensor, stream: Any, knows_read_only: bool, copy: bool | None) -> Any:
    """The same in the memory of the device."""
    value = t.realize()._value
    array, copied = value.array, bool(copy) or not knows_read_only
    if copied:
        if copy is False:
            raise _read_only(t)
        array = value.stack.engine.executor.duplicate(array)
    return value.stack.device.lend(array, stream, knows_read_only, copied)


def _read_only(t: Tensor) -> ExchangeError:
    return ExchangeError(f"{t.spec} cannot be handed out without a copy", operator="__dlpack__", device=t.device.id,
                         hint="copy=None, and a consumer of DLPack 1.0 or later")


def cuda_interface(t: Tensor) -> Any:
    """Contents of a tensor's `__cuda_array_interface__`; AttributeError where there is none."""
    device = t._value.stack.device
    found = None if device.dlpack_device is None else device.cuda_interface(t.realize()._value.array)
    if found is None:
        raise AttributeError(f"{t.spec} on {device.spec.id} has no __cuda_array_interface__")
    return found


def namespace(api_version: str | None) -> Any:
    """The module with the Array API's functions."""
    module = sys.modules[__name__.partition(".")[0]]
    known = ("2021.12", "2022.12", "2023.12", module.__array_api_version__)
    if api_version is not None and api_version not in known:
        raise AttributeValueError(f"no version {api_version!r} of the Array API", hint=f"one of {', '.join(known)}")
    return module
