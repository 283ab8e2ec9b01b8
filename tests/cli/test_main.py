"""The command as such: help, version, errors, and what it says when its packages are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nnc_core import __version__
from tests.cli.conftest import Run


def test_help_lists_the_commands(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("demo", "devices", "graph"):
        assert f"\n  {command} " in result.output


def test_version(run: Run) -> None:
    assert __version__ in run("--version").output


def test_an_error_is_a_message_with_a_status(run: Run) -> None:
    result = run("graph", "--device", "nowhere:0")
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "nowhere:0" in result.output and "Traceback" not in result.output


def run_main(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`main()` in a process of its own, after some code."""
    source = f"import sys\n{code}\nfrom nnc_core.cli import main\nmain()"
    return subprocess.run([sys.executable, "-c", source, *arguments], cwd=Path(__file__).parents[2],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_missing_package_is_named_in_one_line(package: str) -> None:
    result = run_main(f"sys.modules[{package!r}] = None", "--help")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("nnc: ") and "pip install nnc-core[cli]" in result.stderr
    assert package in result.stderr


def test_help_loads_nothing_that_it_does_not_show() -> None:
    late = ["matplotlib", "rich.progress", "nnc_core.cli.lenet"]
    report = f"import atexit; atexit.register(lambda: print([m for m in {late} if m in sys.modules]))"
    result = run_main(report, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("[]\n")


def test_a_warning_is_one_line() -> None:
    result = run_main("import warnings, atexit; atexit.register(lambda: warnings.warn('the sky falls'))", "--version")
    assert "warning: the sky falls\n" in result.stderr
    assert ".py:" not in result.stderr
