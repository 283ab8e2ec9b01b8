"""Products of matrices as machine code: register tiles over packed panels, for products and convolutions."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_core.operator.products.arrange import INTEGER_PROBLEMS, PROBLEMS
from nnc_cpu.products.backend import PackedConvolutions, PackedProducts

PRODUCTS: Mapping[str, CommandBackend] = {
    name: (PackedProducts if name.startswith("matmul") else PackedConvolutions)(name)
    for name in (*PROBLEMS, *INTEGER_PROBLEMS)}
"""The code of each operator that goes before NumPy's."""
