"""Attention as one operator, which gives no sums in ONNX: these are computed besides where somebody reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_core.base.dtype import float32
from nnc_core.io.onnx.writing.table import says, writes
from nnc_core.operator import OPERATORS
from nnc_core.symbol import Node
from nnc_core.type import Op

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

_WHOLE = OPERATORS["scaled_dot_product_attention"]
ATTENTION = Op("attention", ("query", "key", "value"), ("scale", "causal"),
               lambda query, key, value, scale, causal: _WHOLE.infer(query, key, value, scale, causal, 0).parts[0],  # type: ignore[attr-defined]
               doc="The first result of `scaled_dot_product_attention`.")


@says("scaled_dot_product_attention")
def _attention_in_one(F: Any, query: Any, key: Any, value: Any, *rest: Any) -> Any:
    """ONNX leaves open what a query gives that sees nothing, and takes four axes."""
    *mask, scale, causal, offset = rest
    if mask or len(query.shape) != 4 or query.dtype != float32 or scale <= 0 or (causal and offset != 0):
        return None
    assert _WHOLE.decompose is not None
    whole = _WHOLE.decompose(F, query, key, value, scale, causal, offset)
    return F.together(F.apply(ATTENTION, (query, key, value), (scale, causal)), F.pick(whole, index=1))


@writes("attention")
def _attention(w: NodeWriter, node: Node) -> str:
    scale, causal = node.attributes
    return w.b.op("Attention", *[w.read(x) for x in node.inputs], scale=float(scale), is_causal=int(causal))
