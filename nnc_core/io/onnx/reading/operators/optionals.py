"""Optional values: there, or None."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.errors import OperandError
from nnc_core.io.onnx.reading.lanes import Host, Lane
from nnc_core.io.onnx.reading.registry import operator


@operator("Optional")
def optional(value: Any = None, *, type: Any = None) -> Lane:
    return value


@operator("OptionalHasElement")
def optional_has_element(value: Any = None) -> Host:
    return np.asarray(value is not None)


@operator("OptionalGetElement")
def optional_get_element(value: Any) -> Lane:
    if value is None:
        raise OperandError("the optional has no element")
    return value
