"""One model run in every mode, the results of all of them compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from nnc_core.errors import AttributeValueError, NotSupportedError, ShapeError
from nnc_core.io import load_onnx
from tests.io.onnx.backend_cases import check_same


def check_modes(message: onnx.ModelProto, given: Mapping[str, Any], wanted: Sequence[Any], rtol: float = 1e-5,
                atol: float = 1e-6) -> None:
    """Raise AssertionError unless a model gives these outputs eagerly, hybridized, and as a compiled frozen graph."""
    data = message.SerializeToString()
    module = load_onnx(data)
    _check(module(**given), wanted, rtol, atol)
    hybrid = load_onnx(data).hybridize()
    _check(hybrid(**given), wanted, rtol, atol)
    sizes = {name: n for x in module.inputs if x.shape is not None
             for name, n in zip(x.shape, np.shape(given[x.name]), strict=True) if isinstance(name, str)}
    _check(_as_graph(module, given, sizes), wanted, rtol, atol)
    if sizes:
        check_named(module, given, wanted, rtol, atol)


def check_named(module: Any, given: Mapping[str, Any], wanted: Sequence[Any], rtol: float, atol: float) -> None:
    """Raise AssertionError if the graph of named sizes gives others; it may be refused, where sizes that are equal in
    this call are not equal in all."""
    try:
        found = _as_graph(module, given, {})
    except (ShapeError, NotSupportedError, AttributeValueError):
        return
    _check(found, wanted, rtol, atol)


def _as_graph(module: Any, given: Mapping[str, Any], sizes: Mapping[str, int]) -> list[Any]:
    known = {name: given[name] for name in module.static_names}
    graph = module.graph(frozen=True, sizes=sizes, **known)
    found = graph.compile()(**{name: np.asarray(given[name]) for name in graph.inputs})
    return [found[name] for name in module.output_names]


def _check(found: Any, wanted: Sequence[Any], rtol: float, atol: float) -> None:
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    check_same(results, list(wanted), rtol, atol)
