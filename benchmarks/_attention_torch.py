"""Attention in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks._attention import Sized, inputs

torch: Any = import_module("torch")


def attention(work: Sized, compiled: Callable[[Any], Any]) -> Callable[[], Any]:
    """A step gives the result, or in training the query's gradient."""
    query, key, value, cotangent = map(torch.from_numpy, inputs(work.length))
    attend = compiled(torch.nn.functional.scaled_dot_product_attention)

    def ahead() -> Any:
        with torch.no_grad():
            return attend(query, key, value)

    def training() -> Any:
        for x in (query, key, value):
            x.grad = None
        attend(query, key, value).backward(cotangent)
        return query.grad

    if work.training:
        for x in (query, key, value):
            x.requires_grad_()
    return training if work.training else ahead
