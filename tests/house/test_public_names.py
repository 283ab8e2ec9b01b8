"""The public names of nnc_core: sorted, there, and hidden by no module."""

from __future__ import annotations

import pickle
import pkgutil
from types import FunctionType, ModuleType

import nnc_core
from nnc_core import functions
from tests.house.children import answer_of


def test_names_are_unique_and_sorted_where_they_are_listed() -> None:
    names = list(nnc_core.__all__)
    assert len(names) == len(set(names))
    for module in pkgutil.iter_modules(functions.__path__):
        listed = getattr(getattr(functions, module.name), "__all__", [])
        assert list(listed) == sorted(listed), module.name


def test_every_name_exists() -> None:
    assert [name for name in nnc_core.__all__ if not hasattr(nnc_core, name)] == []


def test_functions_are_pickled_by_their_names() -> None:
    """A module that holds one, `nn.Lambda(nnc.tanh)`, can be copied to another process."""
    functions = [f for f in map(vars(nnc_core).get, nnc_core.__all__) if isinstance(f, FunctionType)]
    assert len(functions) > 400
    for f in functions:
        assert pickle.loads(pickle.dumps(f)) is f, f


def test_no_module_bears_the_name_of_a_public_function() -> None:
    modules = {module.name for module in pkgutil.iter_modules(nnc_core.__path__)}
    public = modules & set(nnc_core.__all__)
    assert [name for name in sorted(public) if not isinstance(getattr(nnc_core, name), ModuleType)] == []


def test_importing_every_submodule_changes_no_name() -> None:
    """In a child process: here, other tests may have imported a module that hides a name already."""
    imported, changed = answer_of("""
import importlib, pkgutil
import nnc_core
before = {name: getattr(nnc_core, name) for name in nnc_core.__all__}
found = [module.name for module in pkgutil.walk_packages(nnc_core.__path__, "nnc_core.")]
modules = [name for name in found if not name.endswith(".__main__")]
for name in modules:
    importlib.import_module(name)
answer = len(modules), [name for name, value in before.items() if getattr(nnc_core, name) is not value]
""")
    assert changed == []
    assert imported > 20


def test_completion_shows_what_is_meant_to_be_used() -> None:
    shown = set(dir(nnc_core))
    assert {*nnc_core.__all__, "nn", "io", "optim", "data"} == shown
    assert not shown & {"compose", "import_module", "taken"}
