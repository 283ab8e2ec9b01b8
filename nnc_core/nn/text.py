"""Modules as text."""

from __future__ import annotations

from math import prod

from nnc_core.dynamic.cell import Cell
from nnc_core.nn.parameter import Parameter
from nnc_core.nn.tree import Branch, entries, walk


def tree_text(root: Branch) -> str:
    """One line a module, indented by depth."""
    lines = []
    for module, _, name, depth in walk(root):
        label = f"{name}: " if name else ""
        lines.append(f"{'  ' * depth}{label}{_title(module)}")
    return "\n".join(lines)


def _title(module: Branch) -> str:
    return f"{type(module).__name__}({module.describe()})"


def summary(root: Branch) -> str:
    """A table: path, module, parameters, their number; and the sums."""
    seen: set[Cell] = set()
    rows = [("module", "kind", "parameters", "count")]
    trained = kept = 0
    for module, path, _, _ in walk(root):
        own = [(name, x) for name, x in entries(module) if isinstance(x, Cell) and x not in seen]
        seen.update(x for _, x in own)
        weights = [(name, x) for name, x in own if isinstance(x, Parameter)]
        count = sum(_size(x) for _, x in weights)
        trained, kept = trained + count, kept + sum(_size(x) for _, x in own) - count
        shapes = ", ".join(f"{name} {x.spec}" for name, x in weights)
        rows.append((path or "(root)", type(module).__name__, shapes, f"{count:,}" if weights else ""))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    table = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d:>{widths[3]}}".rstrip() for a, b, c, d in rows]
    table.insert(1, "-" * (sum(widths) + 6))
    return "\n".join([*table, f"{trained:,} trained numbers, {kept:,} in buffers"])


def _size(cell: Cell) -> int:
    return prod(cell.spec.static_shape)
