"""Tables as text."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns beside each other, a rule beneath the first; the last column to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    formats = [f"{'>' if i == last else '<'}{width}" for i, width in enumerate(widths)]
    lines = ["  ".join(f"{x:{f}}" for x, f in zip(row, formats, strict=True)) for row in rows]
    lines.insert(1, "-" * (sum(widths) + 2 * last))
    return [line.rstrip() for line in lines]
