"""All functions of a product: tiles, what packs for them, what ends their sums, and the one that is called."""

from __future__ import annotations

from collections.abc import Iterator

from nnc_cpu.products.ahead import AheadTileWriter, PackingTileWriter
from nnc_cpu.products.amx import AmxTileWriter, configuration_text, rest_text
from nnc_cpu.products.amx_driver import AmxProductWriter
from nnc_cpu.products.amx_rows import AmxRowsWriter
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
    texts = [*(amx_tiles if kind.is_amx else register_tiles)(kind, halves, declared)]
    if kind.is_amx:
        texts.append(AmxRowsWriter(kind, declared).text("convert"))
    elif kind.dots is not None:
        texts.append(WordRowsWriter(kind, declared).text("convert"))
    elif kind.wide != kind.dtype or kind.copies:
        texts.append(ConvertedWriter(kind, halves, declared).text("convert"))
    ending = EndingWriter if kind.ending.pool is None else PooledEndingWriter
    texts.append(ending(kind, halves, declared).text("finish"))
    writer = AmxProductWriter if kind.is_amx else ProductWriter
    if kind.windows != "apart":
        return "".join([*texts, writer(kind, declared).text(name, "")])
    return "".join([*texts, writer(kind, declared).text("part"), parts_text(name, kind, declared)])


def amx_tiles(kind: Kind, halves: bool, declared: dict[str, None]) -> Iterator[str]:
    """The functions of tiles of AMX, and of what they read of B."""
    yield configuration_text()
    for prefix, vectors in (("", kind.vectors), ("last_", kind.last)):
        if vectors:
            yield AmxTileWriter(kind, vectors, declared).text(f"{prefix}tile")
            yield rest_text(f"{prefix}rest", vectors, kind.width, declared)
            yield from packing(prefix, kind, vectors, halves, declared)


def register_tiles(kind: Kind, halves: bool, declared: dict[str, None]) -> Iterator[str]:
    """The functions of tiles whose sums are vectors, and of what they read of B."""
    writer = AheadTileWriter if kind.looks_ahead else TileWriter
    yield writer(kind, kind.vectors, False, declared).text("tile")
    if kind.last:
        masked = kind.right == "panels" or kind.left == "each"
        yield writer(kind, kind.last, masked, declared).text("last_tile")
    for prefix, vectors in (("", kind.vectors), ("last_", kind.last)):
        if vectors and ends_at_once(kind):
            masked = vectors == kind.last and (kind.right == "panels" or kind.left == "each")
            of_kind = AtOnceAheadTileWriter if kind.looks_ahead else AtOnceTileWriter
            yield of_kind(kind, vectors, masked, halves, declared).text(f"{prefix}ending_tile")
        if vectors and kind.packs_in_tiles:
            yield PackingTileWriter(kind, vectors, True, declared).text(f"{prefix}packing_tile")
        elif vectors:
            yield from packing(prefix, kind, vectors, halves, declared)
    if kind.ends_late:
        yield LateTileWriter(kind, halves, declared).text("late_tile")


def packing(prefix: str, kind: Kind, vectors: int, halves: bool, declared: dict[str, None]) -> Iterator[str]:
    """The functions that go through panels of so many vectors before the tiles."""
    if kind.right != "panels":
        writer = PanelWriter(kind, vectors, halves, declared) if kind.dots is None else WordPanelWriter(
            kind, vectors, declared)
        yield writer.text(f"{prefix}pack")
    if kind.is_moved:
        yield excess_text(f"{prefix}exceed", kind, vectors, declared)
