"""Imports go down only; plugins see a few packages of core; core knows no plugin."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.floors import FLOORS, circles, imports_of, modules_of, shares, unit_of, violations

ROOT = Path(__file__).resolve().parents[2]


def tree(root: Path, **sources: str) -> Path:
    """A synthetic house: each keyword is a module (double underscores for dots), each value its source."""
    for module, source in sources.items():
        parts = module.split("__")
        at_top = parts[0] in ("nnc_core", "nnc_plugins")
        above = root if at_top else root / "plugins" / parts[0].removeprefix("nnc_")
        *packages, last = parts if len(parts) > 1 else [*parts, "__init__"]
        for depth in range(1, len(packages) + 1):
            package = above.joinpath(*packages[:depth])
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
        file = above.joinpath(*packages, f"{last}.py")
        file.write_text(source)
    return root


UPWARD = {
    "plain": "import nnc_core.engine.plan",
    "from the package": "from nnc_core.engine import plan",
    "from the root": "from nnc_core import engine",
    "relative": "from ..engine import plan",
    "relative, of a package": "from .. import engine",
    "in a function": "def late():\n    from nnc_core.engine import plan",
    "in an async function": "async def late():\n    import nnc_core.engine",
    "in a method, in a try": "class A:\n  def f(self):\n    try: import nnc_core.engine\n    finally: pass",
    "by importlib": "import importlib\nm = importlib.import_module('nnc_core.engine')",
    "by importlib, relative": "import importlib\nm = importlib.import_module('..engine', __package__)",
    "else of TYPE_CHECKING": "if TYPE_CHECKING:\n    pass\nelse:\n    import nnc_core.engine",
    "under not TYPE_CHECKING": "if not TYPE_CHECKING:\n    import nnc_core.engine",
}


@pytest.mark.parametrize("source", UPWARD.values(), ids=UPWARD)
def test_an_upward_import_is_caught(tmp_path: Path, source: str) -> None:
    root = tree(tmp_path, nnc_core__engine__plan="", nnc_core__graph__autodiff=source)
    (found,) = violations(root)
    assert found.startswith("nnc_core.graph.autodiff:")
    assert "nnc_core.engine" in found
    assert found.endswith("floor 7 imports floor 8; imports go down only")


def test_a_downward_import_is_not(tmp_path: Path) -> None:
    source = "import nnc_core.base\nfrom ..symbol import node\nfrom . import order\nfrom os import path"
    root = tree(tmp_path, nnc_core__symbol__node="", nnc_core__graph__order="", nnc_core__graph__a=source)
    assert list(violations(root)) == []
    modules = modules_of(root)
    found = imports_of("nnc_core.graph.a", modules["nnc_core.graph.a"], set(modules))
    assert [entry.target for entry in found] == [
        "nnc_core.base", "nnc_core.symbol.node", "nnc_core.graph.order", "os"]  # fmt: skip


PLUGIN = "a plugin may import base, codegen, device, operator, shape, type only"
BAD = {
    "sideways": ("nnc_core__nn__linear", "import nnc_core.optim", "floor 16 imports floor 16"),
    "codegen above floor 0": ("nnc_core__codegen__c", "import nnc_core.device", "floor 0.5 imports floor 1"),
    "the face from below": ("nnc_core__nn__linear", "import nnc_core as nnc", "floor 16 imports floor 19"),
    "Tensor for annotations": (
        "nnc_core__graph__a", "if TYPE_CHECKING:\n  from nnc_core.values import Tensor", "knows nodes only"),
    "a package without a floor": ("nnc_core__attic__a", "", "nnc_core.attic: it has no floor"),
    "a target without a floor": ("nnc_core__nn__a", "import nnc_core.attic", "nnc_core.attic has no floor"),
    "core imports a plugin": ("nnc_core__engine__a", "def f(): import nnc_cpu", "nothing imports a plugin"),
    "plugin imports engine": ("nnc_cpu__a", "from nnc_core.engine import plan", PLUGIN),
    "plugin imports symbol": ("nnc_cpu__a", "from nnc_core.symbol import user_line", PLUGIN),
    "plugin imports the face": ("nnc_cpu__a", "import nnc_core", PLUGIN),
    "plugin imports a plugin": ("nnc_cpu__a", "import nnc_opencl", "nothing imports a plugin"),
    "plugin imports the kit": ("nnc_cpu__a", "import nnc_plugins.conformance", "nothing imports it"),
    "builtin imports graph": ("nnc_core__builtin__a", "import nnc_core.graph", PLUGIN),
    "manager imports core": ("nnc_plugins__a", "def f():\n  import nnc_core.base", "TYPE_CHECKING only"),
    "manager imports the kit": (
        "nnc_plugins__doctor", "from nnc_plugins import conformance", "nothing imports it"),
    "registry knows plugins": ("nnc_core__device__a", "def f():\n  import nnc_plugins", "knows no plugins"),
    "plugins at import": ("nnc_core__stacks", "import nnc_plugins", "inside a function only"),
}  # fmt: skip


@pytest.mark.parametrize(("module", "source", "reason"), BAD.values(), ids=BAD)
def test_a_breach_is_caught(tmp_path: Path, module: str, source: str, reason: str) -> None:
    root = tree(tmp_path, **{"nnc_plugins__conformance__kit": "", module: source})
    (found,) = violations(root)
    assert reason in found


GOOD = {
    "stacks spell the layers": ("nnc_core__stacks", "import nnc_core.engine, nnc_core.type.spec"),
    "plugins when asked for": ("nnc_core__stacks", "def f():\n  from nnc_plugins import manager"),
    "a type below": ("nnc_core__graph__a", "if TYPE_CHECKING:\n  from nnc_core.engine import Run"),
    "manager annotates": ("nnc_plugins__manager", "if typing.TYPE_CHECKING:\n  import nnc_core.device"),
    "a plugin": ("nnc_cpu__a", "import nnc_plugins, nnc_core.codegen, nnc_core.operator.philox, nnc_cpu.b"),
    "builtin": ("nnc_core__builtin__a", "import nnc_plugins\nimport nnc_core.operator\nfrom . import b"),
    "cli": ("nnc_core__cli__a", "import nnc_core as nnc, nnc_core.data\nfrom nnc_plugins import doctor"),
    "the face": ("nnc_core", "from nnc_core.values import Tensor\nfrom nnc_core import fft"),
    "the kit": ("nnc_plugins__conformance__kit", "import nnc_core, nnc_core.engine, nnc_plugins.manager"),
}


@pytest.mark.parametrize(("module", "source"), GOOD.values(), ids=GOOD)
def test_what_is_allowed_passes(tmp_path: Path, module: str, source: str) -> None:
    assert list(violations(tree(tmp_path, nnc_core__fft__a="", **{module: source}))) == []


def test_this_house() -> None:
    units = {unit_of(name) for name in modules_of(ROOT)}
    assert {"nnc_core", "nnc_core.base", "nnc_core.engine", "nnc_plugins", "nnc_cpu", "nnc_opencl", "nnc_cuda"} <= units
    assert list(violations(ROOT)) == []


def test_a_circle_is_caught(tmp_path: Path) -> None:
    root = tree(tmp_path, nnc_core__graph__a="from . import b", nnc_core__graph__b="def f():\n  from . import c",
                nnc_core__graph__c="from nnc_core.graph.a import x", nnc_core__graph__d="from . import a")
    assert circles(root) == [["nnc_core.graph.a", "nnc_core.graph.b", "nnc_core.graph.c"]]


def test_two_circles_are_two(tmp_path: Path) -> None:
    root = tree(tmp_path, nnc_core__graph__a="from . import b", nnc_core__graph__b="from . import a, c",
                nnc_core__graph__c="from . import d", nnc_core__graph__d="from . import c")
    assert circles(root) == [["nnc_core.graph.a", "nnc_core.graph.b"], ["nnc_core.graph.c", "nnc_core.graph.d"]]


def test_types_make_no_circle(tmp_path: Path) -> None:
    root = tree(tmp_path, nnc_core__graph__a="from . import b",
                nnc_core__graph__b="if TYPE_CHECKING:\n  from nnc_core.graph.a import x")
    assert circles(root) == []


def test_no_circle_in_this_house() -> None:
    assert circles(ROOT) == []


def test_no_floor_is_over_a_quarter_of_core() -> None:
    assert [(unit, share) for unit, share in shares(ROOT).items() if share > 0.25] == []


def test_each_floor_is_that_of_a_package_and_its_docstring_names_it() -> None:
    modules = modules_of(ROOT)
    assert not FLOORS.keys() - modules.keys(), "these are gone"
    for package, floor in FLOORS.items():
        text = ast.get_docstring(ast.parse(modules[package].read_text(encoding="utf-8"))) or ""
        if text.startswith("Floor "):
            assert text.split(":")[0] == f"Floor {floor:g}", package
