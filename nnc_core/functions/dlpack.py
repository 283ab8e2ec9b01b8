"""Arrays of other libraries, by DLPack."""

from __future__ import annotations

from typing import Any

from nnc_core.functions.creation import asarray, stack_given
from nnc_core.functions.interop import adopt, imported, needs_copy, taken_over
from nnc_core.values.arguments import names_itself
from nnc_core.values.from_host import host_value
from nnc_core.values.tensor import Tensor

__all__ = ["from_dlpack"]


@names_itself
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor from an array of another library, or of NumPy.

    Memory is shared where the device (the current one by default) computes where the array lies, in the host's memory
    or on the same GPU: `asarray` says what that means when it is changed.  copy=True copies, copy=False is a
    ValueError where it would have to.
    """
    if isinstance(x, Tensor):
        return asarray(x, device=device, copy=copy)
    stack = stack_given(device)
    there = taken_over(x, stack, copy)
    if there is not None:
        return there
    host = imported(x, copy)
    adopted = None if copy else adopt(host, stack)
    if adopted is not None:
        return adopted
    if copy is False:
        raise needs_copy(f"{host.dtype}{list(host.shape)} with strides {host.strides}", stack)
    return Tensor(host_value(host, stack=stack))
