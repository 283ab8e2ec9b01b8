"""Attention as machine code, by blocks: a running softmax between products whose tiles stay in registers."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_core.operator.attention_problem import OPERANDS
from nnc_cpu.attention.backend import BlockedAttention

ATTENTION: Mapping[str, CommandBackend] = {name: BlockedAttention(name) for name in OPERANDS}
"""The code of each operator."""
