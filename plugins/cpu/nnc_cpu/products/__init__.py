"""Products of matrices as machine code: register tiles over packed panels, for products and convolutions."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_cpu.products.matmul import PackedProducts

PRODUCTS: Mapping[str, CommandBackend] = {"matmul": PackedProducts()}
"""The code of each operator that goes before NumPy's."""
