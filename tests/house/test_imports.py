"""Any package may be imported first, and core starts with numpy, pluggy and ml_dtypes alone."""

from __future__ import annotations

from pathlib import Path

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


ALONE = """
import importlib, sys, traceback, types
answer = {{}}
for name in {names!r}:
    for known in [m for m in sys.modules if m.partition(".")[0] in ("nnc_core", "nnc_plugins")]:
        del sys.modules[known]
    if {without_face!r}:
        face = sys.modules["nnc_core"] = types.ModuleType("nnc_core")
        face.__path__ = [{core!r}]
    try:
        importlib.import_module(name)
    except Exception:
        answer[name] = traceback.format_exc()
"""


def faults_alone(names: list[str], without_face: bool = False) -> dict[str, str]:
    """Errors of packages by name, each imported where nothing of nnc has been: other libraries are loaded once."""
    faults: dict[str, str] = answer_of(ALONE.format(names=names, without_face=without_face, core=str(ROOT / CORE)))
    return faults


def test_packages_may_be_imported_first() -> None:
    """One of those that nnc_core itself imports is imported in the same order whichever is named."""
    with_core = answer_of("import nnc_core, sys; answer = [*sys.modules]")
    assert "nnc_core.values" in with_core
    others = [name for name in packages() if name not in with_core]
    assert {"nnc_core.cli", "nnc_plugins"} <= {*others}
    assert faults_alone(others) == {}


def test_floors_need_nothing_of_the_face() -> None:
    """An empty module stands for nnc_core/__init__.py, which would import the floors in a lucky order."""
    assert faults_alone(below_the_face(), without_face=True) == {}


def test_a_package_that_cannot_be_imported_first_is_a_fault() -> None:
    [fault] = faults_alone(["nnc_plugins", "nnc_plugins.missing"]).values()
    assert "No module named 'nnc_plugins.missing'" in fault


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
