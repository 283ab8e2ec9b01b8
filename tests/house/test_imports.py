"""Any package may be imported first, and core starts with numpy, pluggy and ml_dtypes alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.children import answer_of
from tests.house.floors import CORE, FLOORS, modules_of, unit_of

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = ["nnc_core", "nnc_plugins", "numpy", "pluggy", "ml_dtypes"]


def packages() -> list[str]:
    """What stands directly in nnc_core and nnc_plugins."""
    firsts = {".".join(name.split(".")[:2]) for name in modules_of(ROOT)}
    return sorted(name for name in firsts if name.startswith(("nnc_core", "nnc_plugins")))


def below_the_face() -> list[str]:
    return [name for name in packages() if unit_of(name) in FLOORS and FLOORS[unit_of(name)] < FLOORS[CORE]]


@pytest.mark.parametrize("name", packages())
def test_a_package_may_be_imported_first(name: str) -> None:
    assert answer_of(f"import {name}, sys; answer = {name!r} in sys.modules")


@pytest.mark.parametrize("name", below_the_face())
def test_a_floor_needs_nothing_of_the_face(name: str) -> None:
    """An empty module stands for nnc_core/__init__.py, which would import the floors in a lucky order."""
    assert answer_of(f"""
import importlib, sys, types
face = sys.modules["nnc_core"] = types.ModuleType("nnc_core")
face.__path__ = [{str(ROOT / CORE)!r}]
importlib.import_module({name!r})
answer = {name!r} in sys.modules
""")


# Modules that compiled code makes up while it runs (Cython's) have no spec and come from no distribution.
LOADED_BY = """
import sys
before = set(sys.modules)
import {module}
new = {{name for name in set(sys.modules) - before if getattr(sys.modules[name], "__spec__", None)}}
answer = sorted({{name.partition(".")[0] for name in new}} - sys.stdlib_module_names)
"""


def test_core_loads_three_libraries() -> None:
    assert set(answer_of(LOADED_BY.format(module="nnc_core"))) <= set(ALLOWED)


def test_options_for_pytest_load_nothing_of_core() -> None:
    """Every pytest run in the environment imports them, of any project."""
    loaded = set(answer_of(LOADED_BY.format(module="nnc_plugins.pytest_options")))
    assert not loaded & {"nnc_core", "numpy", "ml_dtypes"}


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in {allowed!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)
sys.meta_path.insert(0, Block())
try:
    import {module}
    answer = None
except ModuleNotFoundError as error:
    answer = error.name
"""


def test_core_needs_no_other_library() -> None:
    assert answer_of(BLOCKED.format(allowed=ALLOWED, module="nnc_core")) is None


def test_the_block_does_block() -> None:
    assert answer_of(BLOCKED.format(allowed=ALLOWED, module="pytest")) in ("pytest", "_pytest")
    without = BLOCKED.format(allowed=ALLOWED[:2], module="nnc_core.base.dtype")
    assert answer_of(without) in ("numpy", "ml_dtypes")
