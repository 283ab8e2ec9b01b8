"""A class has a name of its own, so that searching for it finds one place.

Families that repeat from floor to floor are left out: operators, their functions, layers and minimisers.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.floors import CORE, modules_of

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = {f"{CORE}.{package}" for package in ("operator", "functions", "nn", "optim")}


def classes(source: str) -> Iterator[str]:
    return (node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))


def named_twice(sources: dict[str, str]) -> dict[str, list[str]]:
    """The modules of each class name that two of them define; `sources` gives text by module."""
    found = defaultdict(list)
    for module, source in sources.items():
        if ".".join(module.split(".")[:2]) not in FAMILIES:
            for name in classes(source):
                found[name].append(module)
    return {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}


def test_no_class_name_is_defined_twice() -> None:
    sources = {name: file.read_text(encoding="utf-8") for name, file in modules_of(ROOT).items()}
    lines = [f"{name}: {', '.join(modules)}" for name, modules in named_twice(sources).items()]
    assert not lines, "classes of one name; rename all but one:\n" + "\n".join(lines)


@pytest.mark.parametrize(("second", "expected"), [
    ("class Other: ...", {}),
    ("class Step: ...", {"Step": ["nnc_core.a", "nnc_core.b"]}),
    ("def f():\n    class Step: ...", {"Step": ["nnc_core.a", "nnc_core.b"]}),
])  # fmt: skip
def test_a_second_class_of_the_name_is_found(second: str, expected: dict[str, list[str]]) -> None:
    assert named_twice({"nnc_core.a": "class Step: ...", "nnc_core.b": second}) == expected


def test_families_may_repeat_names() -> None:
    assert not named_twice({"nnc_core.nn.a": "class Adam: ...", "nnc_core.optim.b.c": "class Adam: ..."})
