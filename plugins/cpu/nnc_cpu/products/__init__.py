"""Products of matrices as machine code: register tiles over packed panels, for products and convolutions."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_core.operator.products.arrange import INTEGER_PROBLEMS, PROBLEMS
from nnc_cpu.products.backend import PackedConvolutions, PackedMatrices, PairedConvolutions, PairedProducts


def _backends(name: str) -> tuple[CommandBackend, ...]:
    if name.startswith("matmul"):
        return PackedMatrices(name), PairedProducts(name)
    return PackedConvolutions(name), PairedConvolutions(name)


PRODUCTS: Mapping[str, tuple[CommandBackend, ...]] = {name: _backends(name) for name in (*PROBLEMS, *INTEGER_PROBLEMS)}
"""The code of each operator that goes before NumPy's, which refuse what another of them is quicker for."""
