"""Which package stands on which floor, and every import that does not go down.

The tables are the rules; `violations(root)` reads the source of a whole tree and imports nothing of it.
It counts imports inside functions and `importlib.import_module("...")` too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CORE, HOUSE = "nnc_core", "nnc_plugins"
CONFORMANCE, OPTIONS = "nnc_plugins.conformance", "nnc_plugins.pytest_options"
EXAMINATION = "nnc_plugins.examination"  # the doctor's child process, a program of its own

# Everything directly under nnc_core; `nnc_core` itself is the public face, its __init__.py.
FLOORS = {
    "nnc_core.base": 0,
    "nnc_core.codegen": 0.5,  # may import floor 0 only
    "nnc_core.device": 1,
    "nnc_core.type": 2,
    "nnc_core.shape": 3,
    "nnc_core.symbol": 4,
    "nnc_core.operator": 5,
    "nnc_core.optimiser": 6,
    "nnc_core.graph": 7,
    "nnc_core.engine": 8,
    "nnc_core.extensions": 8.4,
    "nnc_core.stacks": 8.5,
    "nnc_core.values": 9,
    "nnc_core.recording": 10,
    "nnc_core.control": 11,
    "nnc_core.tracing": 12,
    "nnc_core.random": 12,
    "nnc_core.functions": 13,
    "nnc_core.indexing": 14,
    "nnc_core.callbacks": 14,
    "nnc_core.algodiff": 14,
    "nnc_core.symbols": 14,
    "nnc_core.tensor_methods": 15,
    "nnc_core.nn": 16,
    "nnc_core.optim": 16,
    "nnc_core.data": 17,
    "nnc_core.io": 17,
    "nnc_core.linalg": 17,
    "nnc_core.fft": 17,
    "nnc_core.einops_backend": 17,
    "nnc_core.spellings": 17.3,
    "nnc_core.numpy_calls": 17.6,
    "nnc_core.errors": 17,
    "nnc_core.composition": 18,
    "nnc_core": 19,
    "nnc_core.builtin": 20,
    "nnc_core.cli": 20,
}
TENSORS = 9  # below this floor nothing knows a Tensor, not even for its annotations
PLUGINS_SEE = {f"nnc_core.{name}" for name in ("base", "codegen", "device", "type", "shape", "operator")}
WRITTEN_LIKE_A_PLUGIN = {"nnc_core.builtin"}
MAY_IMPORT_ALL = {CONFORMANCE, OPTIONS, EXAMINATION}
# Who in core may import the plugin manager: at any time, or only once something is asked of it.
SEES_HOUSE = {"nnc_core.cli", "nnc_core.builtin"}
SEES_HOUSE_LAZILY = {"nnc_core.stacks", "nnc_core.extensions"}


@dataclass(frozen=True)
class Import:
    importer: str
    target: str  # the module, as far down as the tree has one
    line: int
    lazy: bool  # inside a function
    type_only: bool  # under `if TYPE_CHECKING`


def modules_of(root: Path) -> dict[str, Path]:
    """Every module of nnc_core, nnc_plugins and the plugins under `root`, by name."""
    packages = [root / CORE, root / HOUSE, *sorted(root.glob("plugins/*/nnc_*"))]
    return {
        _module_name(file, package.parent): file
        for package in packages
        for file in sorted(package.rglob("*.py"))
    }


def _module_name(file: Path, above: Path) -> str:
    parts = file.relative_to(above).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit_of(module: str) -> str:
    """The package that a rule speaks of: nnc_core.graph of nnc_core.graph.autodiff, nnc_cpu of nnc_cpu.a."""
    first_two = ".".join(module.split(".")[:2])
    if module.split(".")[0] == CORE or first_two in MAY_IMPORT_ALL:
        return first_two
    return module.split(".")[0]


class _Reader(ast.NodeVisitor):
    """Collects one module's imports; `calls`: whether expressions may hold some, which are most of a tree."""

    def __init__(self, name: str, file: Path, known: set[str], calls: bool) -> None:
        self.name, self.known, self.calls = name, known, calls
        self.package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        self.lazy = self.type_only = False
        self.found: list[Import] = []

    def visit(self, node: ast.AST) -> None:
        if self.calls or not isinstance(node, ast.expr):
            super().visit(node)

    def add(self, target: str, line: int) -> None:
        self.found.append(Import(self.name, target, line, self.lazy, self.type_only))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.absolute("." * node.level + (node.module or ""))
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            self.add(inner if inner in self.known else base, node.lineno)

    def absolute(self, name: str) -> str:
        dots = len(name) - len(name.lstrip("."))
        if not dots:
            return name
        above = self.package.split(".")[: len(self.package.split(".")) - dots + 1]
        return ".".join([*above, *filter(None, [name[dots:]])])

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        first = node.args[0] if node.args else None
        if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
            self.add(self.absolute(str(first.value)), node.lineno)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not _asks_type_checking(node.test):
            return self.generic_visit(node)
        before, self.type_only = self.type_only, True
        self.visit_all(node.body)
        self.type_only = before
        self.visit_all(node.orelse)

    def visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        # Decorators and defaults run where the function is defined, so only the body is late.
        self.visit_all([*node.decorator_list, node.args])
        self.visit_late(node.body)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_function  # noqa: N815 (names that ast gives)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self.visit_late([node.body])

    def visit_late(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        before, self.lazy = self.lazy, True
        self.visit_all(nodes)
        self.lazy = before

    def visit_all(self, nodes: list[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)


def _asks_type_checking(test: ast.expr) -> bool:
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)) == "TYPE_CHECKING"


def imports_of(name: str, file: Path, known: set[str]) -> list[Import]:
    source = file.read_text(encoding="utf-8")
    reader = _Reader(name, file, known, calls="import_module" in source or "__import__" in source)
    reader.visit(ast.parse(source, str(file)))
    return reader.found


def objection(entry: Import) -> str | None:
    """Why this import must not be, or None."""
    importer, target = unit_of(entry.importer), unit_of(entry.target)
    if importer == target or importer in MAY_IMPORT_ALL:
        return None
    if target == HOUSE or target in MAY_IMPORT_ALL:
        return _objection_to_house(importer, target, entry)
    if entry.target.split(".")[0] == CORE:
        return _objection_to_core(importer, target, entry)
    return f"nothing imports a plugin, and {target} is one" if target.startswith("nnc_") else None


def _objection_to_house(importer: str, target: str, entry: Import) -> str | None:
    if target in MAY_IMPORT_ALL:
        return f"{target} may import everything, so nothing imports it"
    if importer in FLOORS and importer not in SEES_HOUSE:
        if importer not in SEES_HOUSE_LAZILY:
            return "this part of core knows no plugins"
        return None if entry.lazy or entry.type_only else "core reaches nnc_plugins inside a function only"
    return None


def _objection_to_core(importer: str, target: str, entry: Import) -> str | None:
    if target not in FLOORS:
        return f"{target} has no floor; give it one in tests/house/floors.py"
    if importer == HOUSE:
        return None if entry.type_only else "nnc_plugins imports core under TYPE_CHECKING only"
    if importer not in FLOORS or importer in WRITTEN_LIKE_A_PLUGIN:
        seen = ", ".join(sorted(name.rpartition(".")[2] for name in PLUGINS_SEE))
        return None if target in PLUGINS_SEE else f"a plugin may import {seen} only"
    if FLOORS[target] < FLOORS[importer]:
        return None
    if entry.type_only:
        return _objection_to_type(importer, target)
    return f"floor {FLOORS[importer]:g} imports floor {FLOORS[target]:g}; imports go down only"


def _objection_to_type(importer: str, target: str) -> str | None:
    if FLOORS[importer] < TENSORS <= FLOORS[target]:
        return f"floor {FLOORS[importer]:g} knows nodes only; a Tensor is known from floor {TENSORS} on"
    return None


def violations(root: Path) -> Iterator[str]:
    """One line, `module:line: target: reason`, for each import and package of core that breaks a rule."""
    modules = modules_of(root)
    for unit in sorted({unit_of(name) for name in modules if name.split(".")[0] == CORE} - set(FLOORS)):
        yield f"{unit}: it has no floor; give it one in tests/house/floors.py"
    for name, file in modules.items():
        if name.split(".")[0] == CORE and unit_of(name) not in FLOORS:
            continue
        for entry in imports_of(name, file, set(modules)):
            if (reason := objection(entry)) is not None:
                yield f"{name}:{entry.line}: {entry.target}: {reason}"


def circles(root: Path) -> list[list[str]]:
    """Modules that need each other at run time, imports inside functions counted; a package's `__init__` counts as
    the package."""
    modules = modules_of(root)
    arrows = {name: [e.target for e in imports_of(name, file, set(modules)) if not e.type_only and e.target in modules]
              for name, file in modules.items()}  # fmt: skip
    return sorted(sorted(group) for group in _strongly_connected(arrows) if len(group) > 1)


def _strongly_connected(arrows: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Tarjan, "Depth-first search and linear graph algorithms" (1972), with a stack of its own."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    for root in arrows:
        path = [(root, iter(arrows[root]))] if root not in number else []
        while path:
            name, targets = path[-1]
            if name not in number:
                number[name] = lowest[name] = len(number)
                waiting.append(name)
            following = next((t for t in targets if t not in number or t in waiting), None)
            if following is None:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[name])
                if lowest[name] == number[name]:
                    at = waiting.index(name)
                    yield waiting[at:]
                    del waiting[at:]
            elif following in number:
                lowest[name] = min(lowest[name], number[following])
            else:
                path.append((following, iter(arrows[following])))


def shares(root: Path) -> dict[str, float]:
    """The part of core's lines that each package under nnc_core has."""
    lines: dict[str, int] = {}
    for name, file in modules_of(root).items():
        if name.split(".")[0] == CORE:
            unit = unit_of(name)
            lines[unit] = lines.get(unit, 0) + len(file.read_text(encoding="utf-8").splitlines())
    return {unit: count / sum(lines.values()) for unit, count in lines.items()}
