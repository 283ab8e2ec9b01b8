"""All functions of a product: tiles, what packs for them, what ends their sums, and the one that is called."""

from __future__ import annotations

from collections.abc import Iterator

from nnc_cpu.products.ahead import AheadTileWriter, PackingTileWriter
from nnc_cpu.products.at_once import AtOnceAheadTileWriter, AtOnceTileWriter, ends_at_once
from nnc_cpu.products.converted import ConvertedWriter
from nnc_cpu.products.driver import ProductWriter
from nnc_cpu.products.ending import EndingWriter
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.late import LateTileWriter
from nnc_cpu.products.panels import PanelWriter
from nnc_cpu.products.parts import parts_text
from nnc_cpu.products.pooled_ending import PooledEndingWriter
from nnc_cpu.products.tile import TileWriter
from nnc_cpu.products.word_panels import WordPanelWriter, excess_text
from nnc_cpu.products.word_rows import WordRowsWriter


def render(name: str, kind: Kind, halves: bool, declared: dict[str, None]) -> str:
    """The text of all functions of a product; `name` is the one to call."""
    writer = AheadTileWriter if kind.looks_ahead else TileWriter
    texts = [writer(kind, kind.vectors, False, declared).text("tile")]
    if kind.last:
        masked = kind.right == "panels" or kind.left == "each"
        texts.append(writer(kind, kind.last, masked, declared).text("last_tile"))
    for prefix, vectors in (("", kind.vectors), ("last_", kind.last)):
        if vectors and ends_at_once(kind):
            masked = vectors == kind.last and (kind.right == "panels" or kind.left == "each")
            of_kind = AtOnceAheadTileWriter if kind.looks_ahead else AtOnceTileWriter
            texts.append(of_kind(kind, vectors, masked, halves, declared).text(f"{prefix}ending_tile"))
        if vectors and kind.packs_in_tiles:
            texts.append(PackingTileWriter(kind, vectors, True, declared).text(f"{prefix}packing_tile"))
        elif vectors:
            texts += packing(prefix, kind, vectors, halves, declared)
    if kind.ends_late:
        texts.append(LateTileWriter(kind, halves, declared).text("late_tile"))
    if kind.dots is not None:
        texts.append(WordRowsWriter(kind, declared).text("convert"))
    elif kind.wide != kind.dtype:
        texts.append(ConvertedWriter(kind, halves, declared).text("convert"))
    ending = EndingWriter if kind.ending.pool is None else PooledEndingWriter
    texts.append(ending(kind, halves, declared).text("finish"))
    if kind.windows != "apart":
        return "".join([*texts, ProductWriter(kind, declared).text(name, "")])
    return "".join([*texts, ProductWriter(kind, declared).text("part"), parts_text(name, kind, declared)])


def packing(prefix: str, kind: Kind, vectors: int, halves: bool, declared: dict[str, None]) -> Iterator[str]:
    """The functions that go through panels of so many vectors before the tiles."""
    if kind.right != "panels":
        writer = PanelWriter(kind, vectors, halves, declared) if kind.dots is None else WordPanelWriter(
            kind, vectors, declared)
        yield writer.text(f"{prefix}pack")
    if kind.is_moved:
        yield excess_text(f"{prefix}exceed", kind, vectors, declared)
