"""Docstrings begin with a noun or a verb: "True if ...", "Number of ...", not with a clause in place of one."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.floors import modules_of

ROOT = Path(__file__).resolve().parents[2]
CLAUSES = frozenset({
    "By", "How", "Of", "What", "Whatever", "When", "Whenever", "Where", "Wherever", "Whether", "Which", "Whichever",
    "Who", "Whoever", "Whose", "Why",
})  # fmt: skip
"""Relative words and the like, which leave the reader to guess what the subject is."""


def clauses(source: str) -> Iterator[tuple[str, str]]:
    """Name and first line of everything in a module whose docstring begins so."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        text = ast.get_docstring(node) or ""
        if text.partition(" ")[0] in CLAUSES:
            yield getattr(node, "name", "the module"), text.partition("\n")[0]


def test_no_docstring_begins_with_a_clause() -> None:
    lines = [f"{module}: {name}: {text}" for module, file in modules_of(ROOT).items()
             for name, text in clauses(file.read_text(encoding="utf-8"))]
    assert not lines, "begin these docstrings with a noun or a verb:\n" + "\n".join(lines)


@pytest.mark.parametrize(("source", "names"), [
    ('"""Whether it holds."""', ["the module"]),
    ('class A:\n    """What it is."""\n    def f(self):\n        """True if it holds."""', ["A"]),
    ('async def f():\n    """\n    How often\n    it ran.\n    """', ["f"]),
    ('def f():\n    """Whereabouts of x."""', []),
    ('def f():\n    return "What it is."', []),
])  # fmt: skip
def test_clauses_are_found(source: str, names: list[str]) -> None:
    assert [name for name, _ in clauses(source)] == names


@pytest.mark.parametrize("place", ["", "nn", "optim", "linalg", "fft", "io", "data", "errors"])
def test_whatever_users_may_call_says_what_it_does(place: str) -> None:
    module = importlib.import_module(f"nnc_core.{place}".rstrip("."))
    public = {name: getattr(module, name) for name in module.__all__}
    silent = [name for name, x in public.items() if callable(x) and not (x.__doc__ or "").strip()]
    assert not silent, f"these have no docstring: {', '.join(silent)}"
