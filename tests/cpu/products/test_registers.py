"""Sums of tiles stay in registers: what LLVM writes to the stack in their loops is counted in its code."""

from __future__ import annotations

import re

import pytest

from nnc_core.base.dtype import float32
from nnc_cpu.llvm.compiler import TargetHost, host
from nnc_cpu.products import backend
from nnc_cpu.products.kernel import ProductCompiler
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.plan import Tile, choose_tile
from tests.cpu.products.test_matmul import matrices

WIDE = TargetHost("skylake-avx512", "", 16, True, scales=True)
NARROW = TargetHost("haswell", "", 8, True)
FEW = 8
"""Vectors that a tile may keep on the stack and read again, in all of its code; sums without registers are dozens."""
TILES = {
    "wide": (WIDE, (Tile(6, 4), Tile(5, 4), Tile(4, 4), Tile(8, 3), Tile(9, 3), Tile(5, 3), Tile(10, 2), Tile(8, 2),
                    Tile(10, 1), Tile(8, 1), Tile(2, 8))),
    "narrow": (NARROW, (Tile(4, 3), Tile(3, 3), Tile(6, 2), Tile(5, 2), Tile(10, 1), Tile(8, 1))),
}  # fmt: skip

pytestmark = pytest.mark.skipif(not host().x86, reason="the code is that of x86-64")


def on_the_stack(compiler: ProductCompiler, kind: Kind) -> dict[str, int]:
    """Vectors that each function of tiles stores on the stack, or loads from there."""
    machine = compiler.machine
    code, counts, name = machine.machine.emit_assembly(machine.optimised(compiler.text(kind))), dict[str, int](), ""
    for line in code.splitlines():
        if label := re.match(r"([a-z_]*tile):", line):
            name = label[1]
            counts[name] = 0
        elif name and re.search(r"%[yz]mm\d+.*\(%r[sb]p\)|\(%r[sb]p\).*%[yz]mm", line):
            counts[name] += 1
        elif line.startswith(".Lfunc_end"):
            name = ""
    return counts


@pytest.mark.parametrize("width", TILES)
def test_sums_stay_in_registers(width: str) -> None:
    target, tiles = TILES[width]
    compiler = ProductCompiler(target)
    for tile in tiles:
        kind = compiler.plan(backend.problem_of(matrices(512, 512, 512, float32)), tile).kind
        for right in ("panels", "rows"):
            counts = on_the_stack(compiler, kind._replace(right=right))  # type: ignore[arg-type]
            assert "tile" in counts and max(counts.values()) <= FEW, (tile, right, counts)


def test_tiles_that_are_chosen_are_among_these() -> None:
    """But for those of few rows, which read B most of the time."""
    for width, (target, tiles) in TILES.items():
        tallest = {vectors: max(t.rows for t in tiles if t.vectors == vectors) for vectors in range(1, 4)}
        for rows in range(4, 300, 7):
            for columns in (8, 16, 24, 32, 48, 64, 100, 512):
                chosen = choose_tile(rows, columns, target.lanes, width == "wide")
                assert chosen.vectors > 3 or chosen.rows <= tallest[chosen.vectors], (rows, columns, chosen)
