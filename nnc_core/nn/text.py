"""Modules as text."""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.nn.inference import as_spec, inferred, watching
from nnc_core.nn.layers.checks import title
from nnc_core.nn.parameter import Parameter
from nnc_core.nn.table import table
from nnc_core.nn.tree import ModuleNode, entries, walk
from nnc_core.type import TensorSpec
from nnc_core.values.cell import Cell
from nnc_core.values.tree import flatten


def tree_text(root: ModuleNode) -> str:
    """One line a module, indented by depth."""
    lines = []
    for module, _, name, depth in walk(root):
        label = f"{name}: " if name else ""
        lines.append(f"{'  ' * depth}{label}{title(module)}")
    return "\n".join(lines)


def summary(root: ModuleNode, inputs: tuple[Any, ...] = ()) -> str:
    """A table: path, module, parameters, their number; what each gives if inputs are described; and the sums."""
    results = _results(root, inputs) if inputs else {}
    seen: set[Cell] = set()
    rows = []
    trained = frozen = kept = 0
    for module, path, _, _ in walk(root):
        own = [(name, x) for name, x in entries(module) if isinstance(x, Cell) and x not in seen]
        seen.update(x for _, x in own)
        weights = [(name, x) for name, x in own if isinstance(x, Parameter)]
        still = sum(_size(x) for _, x in weights if x.frozen)
        count = sum(_size(x) for _, x in weights)
        trained, frozen = trained + count - still, frozen + still
        kept += sum(_size(x) for _, x in own) - count
        shapes = ", ".join(f"{name} {x.spec}{' frozen' * x.frozen}" for name, x in weights)
        given = [results.get(id(module), "")] if inputs else []
        rows.append((path or "(root)", type(module).__name__, *given, shapes, f"{count:,}" if weights else ""))
    head = ("module", "kind", *["gives"] * bool(inputs), "parameters", "count")
    sums = f"{trained:,} trained numbers, {kept:,} in buffers" + (f", {frozen:,} frozen" if frozen else "")
    return "\n".join([*table([head, *rows]), sums])


def _results(root: ModuleNode, inputs: tuple[Any, ...]) -> dict[int, str]:
    """The first result of each module, and how often it is called, by id."""
    first: dict[int, Any] = {}
    calls: dict[int, int] = {}

    def called(module: ModuleNode, result: Any) -> None:
        first.setdefault(id(module), result)
        calls[id(module)] = calls.get(id(module), 0) + 1

    with watching(called):
        inferred(root, tuple([_described(x) for x in inputs]), {})
    return {key: _shown(result) + (f" ({calls[key]} calls)" if calls[key] > 1 else "")
            for key, result in first.items()}


def _described(x: Any) -> Any:
    """A spec for each shape; shapes within lists and dicts too."""
    if isinstance(x, dict):
        return {key: _described(part) for key, part in x.items()}
    if isinstance(x, (list, tuple)) and any(isinstance(part, (list, tuple, dict, TensorSpec)) for part in x):
        return type(x)([_described(part) for part in x])
    return as_spec(x)


def _shown(result: Any) -> str:
    return ", ".join(str(getattr(x, "spec", x)) for x in flatten(result)[0])


def _size(cell: Cell) -> int:
    return prod(cell.spec.static_shape)
