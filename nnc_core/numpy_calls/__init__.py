"""Tensors given to NumPy's own functions: what NumPy asks them for, `__array_ufunc__` and `__array_function__`.

A call that nnc has a function of the same meaning for is that function's: its result is a tensor, on the tensors'
device, recorded, traced and followed by gradients like any other.  Where an array of NumPy's is written, NumPy writes
it.  Everything else is one error; nothing leaves for the host unasked.
"""

from __future__ import annotations
