"""A plugin that ends or hangs a process does so once: the next processes leave it alone until it works again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nnc_core.base.cache_folder import PLUGIN_MARKS
from nnc_plugins import Manager, Marks
from nnc_plugins import marks as marks_module
from nnc_plugins.discovery import BLOCK_VARIABLE
from nnc_plugins.doctor import diagnose_all
from tests.plugins.fixtures.distributions import ROOT, program_beside

ALL = "import nnc_core as nnc; print([d.id for d in nnc.devices()])"
CRASHED = "plugin break (nnc-fake-break 1.0): blocked, crashed last time"


def test_the_doctor_lets_in_what_works_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = program_beside(tmp_path, "break")
    run(ALL, "listing abort")
    marks = Marks(tmp_path / "cache" / PLUGIN_MARKS)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), str(ROOT), *sys.path])
    monkeypatch.setenv(BLOCK_VARIABLE, "cpu,opencl,builtin")
    for how, state in (("listing abort", "crashed"), ("", "ok")):
        monkeypatch.setenv("FAKE_BREAK", how)
        assert CRASHED in run(ALL).stderr  # until it was seen to work
        found = {result.name: result for result in diagnose_all(marks=marks)}
        assert (found["break"].state, found["break"].crashed) == (state, "listing its devices")
    assert run(ALL).stdout == "['strict:0', 'break:0']\n"


# ---- marks themselves
def die_in(step: str, folder: Path, source: str = "one 1.0") -> None:
    """Leave a mark as a process does that is killed."""
    code = (f"import os, sys; sys.path[:] = {sys.path!r}\nfrom pathlib import Path\nfrom nnc_plugins import Marks\n"
            f"with Marks(Path({str(folder)!r})).trying('a/b', {source!r}, {step!r}): os.kill(os.getpid(), 9)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_what_cannot_be_marked_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lock(*args: Any, **options: Any) -> None:
        raise OSError("no locks on this disk")

    monkeypatch.setattr(marks_module, "_lock", no_lock)
    with Marks(tmp_path).trying("a/b", "one 1.0", "being imported"):
        assert not [*tmp_path.iterdir()]


def test_a_mark_is_found_when_its_process_is_gone(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")
    assert marks.left("a/b", "one 1.0") is None
    with marks.trying("a/b", "one 1.0", "alive"):
        assert marks.left("a/b", "one 1.0") is None
        marks.clear("a/b")
    assert list(marks.folder.iterdir()) == []
    die_in("dying", marks.folder)
    assert (marks.left("a/b", "one 1.0"), marks.left("a", "one 1.0")) == ("dying", None)
    marks.clear("a/b")
    assert marks.left("a/b", "one 1.0") is None


def test_a_mark_that_goes_while_it_is_read_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs start at once: one comes through while the other looks at its mark."""
    marks, lock = Marks(tmp_path), marks_module._lock
    trying = marks.trying("odd", "odd 1.0", "being imported")
    trying.__enter__()

    def late(file: Any, shared: bool = False) -> None:
        if shared:
            trying.__exit__(None, None, None)
        lock(file, shared)

    monkeypatch.setattr(marks_module, "_lock", late)
    assert marks.left("odd", "odd 1.0") is None


def test_another_version_starts_afresh(tmp_path: Path) -> None:
    die_in("dying", tmp_path)
    assert Marks(tmp_path).left("a/b", "one 1.1") is None
    assert Marks(tmp_path).left("a/b", "one 1.0") is None


@pytest.mark.parametrize(("patience", "kept"), [(1000.0, 0), (-1.0, 1)])
def test_an_interrupt_is_the_end_of_a_hang_only_after_a_while(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float, kept: int) -> None:
    monkeypatch.setattr(marks_module, "PATIENCE", patience)
    with pytest.raises(KeyboardInterrupt), Marks(tmp_path).trying("a", "one 1.0", "hanging"):
        raise KeyboardInterrupt
    assert len(list(tmp_path.iterdir())) == kept


def test_without_a_folder_nothing_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    marks = Marks(file / "marks")
    with marks.trying("a", "one 1.0", "trying"):
        assert marks.left("a", "one 1.0") is None
    marks.clear("a")
    assert Manager(only=(), marks=marks).discover().records == ()
