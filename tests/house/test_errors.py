"""Whoever catches an error finds its class in nnc.errors."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import nnc_core as nnc
from nnc_core.base import errors as declared
from nnc_core.base.missing import MissingPackageError
from tests.house.floors import CORE, modules_of

ROOT = Path(__file__).resolve().parents[2]


def classes_of(module: object) -> Iterator[type[BaseException]]:
    """Errors and warnings that a module defines."""
    name = getattr(module, "__name__", None)
    return (x for x in vars(module).values()
            if isinstance(x, type) and issubclass(x, BaseException) and x.__module__ == name)  # fmt: skip


def public() -> set[type[BaseException]]:
    return {getattr(nnc.errors, name) for name in nnc.errors.__all__}


def unlisted(found: set[type[BaseException]], listed: set[type[BaseException]]) -> set[str]:
    """Classes that are neither listed nor private, and that nobody catches by a class more telling than Error."""
    bases = tuple(listed - {nnc.Error})
    return {x.__name__ for x in found - listed if not x.__name__.startswith("_") and not issubclass(x, bases)}


def test_all_that_is_declared_is_public() -> None:
    assert set(classes_of(declared)) <= public()
    assert [x.__name__ for x in public() if "__doc__" not in vars(x) or not x.__doc__] == []


def test_every_class_of_core_is_public_or_is_one_that_is() -> None:
    modules = [name for name in modules_of(ROOT) if name.split(".")[0] == CORE and not name.endswith("__main__")]
    found = {x for name in modules for x in classes_of(import_module(name))}
    assert len(found) > 40
    assert unlisted(found, public()) == set()


def test_errors_are_of_the_root_and_of_a_builtin() -> None:
    for x in public() - {nnc.Error}:
        assert issubclass(x, Warning) or (issubclass(x, nnc.Error) and len(x.__mro__) > len(nnc.Error.__mro__) + 1), x


def test_a_class_that_nobody_can_name_is_found() -> None:
    other = type("OtherError", (nnc.Error,), {})
    shape = type("RankError", (nnc.errors.ShapeError,), {})
    assert unlisted({other, shape}, public()) == {"OtherError"}


def test_it_is_there_after_the_import_alone() -> None:
    with pytest.raises(nnc.errors.ShapeError):
        nnc.ones(2) + nnc.ones(3)


def fixed_levels(source: str) -> list[int]:
    """Lines of warnings that name a frame by its number, which is seldom the user's."""
    return [word.value.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
            for word in node.keywords if word.arg == "stacklevel" and isinstance(word.value, ast.Constant)]


def test_warnings_name_the_users_line() -> None:
    ours = {name: file for name, file in modules_of(ROOT).items() if not name.startswith("nnc_plugins.")}
    assert {name: found for name, file in ours.items() if (found := fixed_levels(file.read_text()))} == {}


def test_a_warning_at_a_line_of_ours_is_found() -> None:
    assert fixed_levels("warn('x', stacklevel=2)\nwarn('y', stacklevel=users_frame())") == [1]


def test_a_package_that_is_missing_is_an_error_at_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"(?s)^load_onnx: .*test_errors.py.*nnc-core\[onnx\]"):
        nnc.io.load_onnx("model.onnx")
