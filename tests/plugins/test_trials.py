"""New plugins take their first steps in a process of their own: what ends or hangs it is left out, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from nnc_core.base.cache_folder import PLUGIN_TRIALS
from nnc_core.base.disk_cache import DiskCache
from nnc_core.base.errors import FallbackWarning
from nnc_plugins import Trials
from nnc_plugins.child import ON_TRIAL, Extent
from nnc_plugins.discovery import BLOCK_VARIABLE, Candidate, find_plugins
from nnc_plugins.doctor import diagnose_all
from nnc_plugins.trials import ProcessEnd
from tests.plugins.fixtures.distributions import ROOT, install, program_beside

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
STEPS = {"import": "being imported", "passes": "adding code and rewrites", "listing": "listing its devices"}
ENDED = {"leave": "left with exit status 3", "segfault": "killed by SIGSEGV", "abort": "killed by SIGABRT"}
LEFT_OUT = "plugin break (nnc-fake-break 1.0): blocked, left out: tried in a process of its own, {how} while {step}; "
USES = "import nnc_core as nnc; print(nnc.ones(2, device='strict:0').tolist())"
ALL = "import nnc_core as nnc; print([d.id for d in nnc.devices()])"
QUICK = (("import", "segfault"), ("passes", "abort"), ("listing", "leave"))
ENDINGS = [pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow) for pair in product(STEPS, ENDED)]


# ---- programs
@posix
@pytest.mark.parametrize(("place", "way"), ENDINGS)
def test_what_would_end_a_program_is_left_out(tmp_path: Path, place: str, way: str) -> None:
    """From the first program on, which is told why; who uses another device is not even told of what is only listed."""
    program = program_beside(tmp_path, "break", tried=True)
    message = LEFT_OUT.format(how=ENDED[way], step=STEPS[place])
    done = program(USES, f"{place} {way}")
    assert (done.returncode, done.stdout) == (0, "[1.0, 1.0]\n"), done.stderr
    assert (message in done.stderr) if place != "listing" else done.stderr == ""
    done = program(ALL, f"{place} {way}" if place == "listing" else "")  # what the first has seen is remembered
    assert (done.returncode, done.stdout) == (0, "['strict:0']\n"), done.stderr
    assert message in done.stderr


@posix
def test_what_works_is_used_and_not_tried_again(tmp_path: Path) -> None:
    program = program_beside(tmp_path, "break", tried=True)
    assert program(ALL).stdout == "['strict:0', 'break:0']\n"
    assert program(ALL, "import leave").returncode == 3  # in the program itself: it is well known


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on sys.path, with a plugin, where nothing has been tried."""
    install(tmp_path / "site", "break")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), str(ROOT), *sys.path])
    monkeypatch.setenv(BLOCK_VARIABLE, "cpu,opencl,cuda,builtin")
    monkeypatch.delenv(ON_TRIAL, raising=False)
    return tmp_path / "site"


def installed() -> Candidate:
    [found] = [candidate for candidate in find_plugins() if candidate.name == "break"]
    return found


@posix
def test_a_hang_ends(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BREAK", "import hang")
    trials = Trials(None, patience=2)
    assert trials.ending(installed(), "import") == ProcessEnd("no answer in 2 s", "being imported")


@posix
def test_the_doctor_tells_and_lets_in_what_works(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(DiskCache(tmp_path / PLUGIN_TRIALS))
    for how, ending, state in (("import abort", ProcessEnd("killed by SIGABRT", "being imported"), "crashed"),
                               ("", None, "ok")):
        monkeypatch.setenv("FAKE_BREAK", how)
        if how:
            assert trials.ending(installed(), "import") == ending
        found = {result.name: result for result in diagnose_all(trials=trials)}["break"]
        assert (found.state, found.crashed) == (state, "being imported")
        assert trials.ending(installed(), "import") == trials.known(installed()) == ending


# ---- what is remembered
class Tried:
    """Stands for the process: counts trials, which all end alike."""

    def __init__(self, ending: ProcessEnd | None = None) -> None:
        self.ending, self.extents = ending, list[Extent]()

    def __call__(self, name: str, seconds: float, options: Mapping[str, Any], extent: Extent) -> ProcessEnd | None:
        self.extents.append(extent)
        return self.ending


@pytest.mark.parametrize("ending", [None, ProcessEnd("killed by SIGSEGV", "being imported")])
def test_it_is_tried_once(site: Path, tmp_path: Path, ending: ProcessEnd | None) -> None:
    run = Tried(ending)
    for _ in range(2):  # as two processes
        trials = Trials(DiskCache(tmp_path / "trials"), run=run)
        extents: tuple[Extent, ...] = ("import", "listing")
        assert [trials.ending(installed(), extent) for extent in extents] == [ending, ending]
    assert run.extents == ["import", "listing"]


def test_any_change_of_it_is_tried_anew(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Tried()
    trials = Trials(DiskCache(tmp_path / "trials"), run=run)

    def tried() -> bool:
        before = len(run.extents)
        trials.ending(installed(), "import")
        return len(run.extents) > before

    assert (tried(), tried()) == (True, False)
    os.utime(site / "fake_break.py", ns=(1, 1))  # as an editor leaves it, of an editable installation too
    assert (tried(), tried()) == (True, False)
    info = site / "nnc_fake_break-1.0.dist-info"
    (info / "RECORD").write_text("fake_break.py,sha256=other,1\n")  # another wheel of this version
    assert (tried(), tried()) == (True, False)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nnc-fake-break\nVersion: 1.1\n")
    assert (tried(), tried()) == (True, False)
    monkeypatch.setattr(sys, "version", "4.0")
    assert (tried(), tried()) == (True, False)


def test_packages_are_looked_at_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without importing them."""
    site, run = install(tmp_path, "good"), Tried()
    entries = site / "nnc_fake_good-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[nnc.plugins.v1]\ngood = pack.inner:thing\n")
    (site / "pack").mkdir()
    for name in ("__init__.py", "inner.py"):
        (site / "pack" / name).write_text("raise SystemError\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    [candidate] = [found for found in find_plugins() if found.name == "good"]
    trials = Trials(DiskCache(tmp_path / "trials"), run=run)
    trials.ending(candidate, "import")
    (site / "pack" / "inner.py").write_text("raise TypeError\n")
    trials.ending(candidate, "import")
    assert run.extents == ["import"] * 2


def test_where_nothing_can_be_kept_each_process_tries_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = Tried(ProcessEnd("killed by SIGSEGV", "being imported"))
    for store in (None, None, DiskCache(tmp_path / "file" / "trials")):
        trials = Trials(store, run=run)
        if store is None:
            assert trials.ending(installed(), "import") == run.ending
        else:
            with pytest.warns(FallbackWarning, match="nothing can be"):
                assert trials.ending(installed(), "import") == run.ending
    assert len(run.extents) == 3


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_what_others_may_write_counts_for_nothing(site: Path, tmp_path: Path) -> None:
    run, store = Tried(), DiskCache(tmp_path / "trials")
    Trials(store, run=run).ending(installed(), "import")
    store.path.chmod(0o777)
    with pytest.warns(FallbackWarning, match="other users may write"):
        Trials(store, run=run).ending(installed(), "import")
    assert len(run.extents) == 2


# ---- what is not tried
def not_tried() -> None:
    run = Tried(ProcessEnd("killed by SIGSEGV", "being imported"))
    assert Trials(None, run=run).ending(installed(), "import") is None
    assert run.extents == []


def test_programs_that_would_start_themselves_try_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks of crashes are left to them."""
    with monkeypatch.context() as context:
        context.setattr(sys, "frozen", True, raising=False)
        not_tried()
    for program in ("", "/usr/bin/blender", None):
        monkeypatch.setattr(sys, "executable", program)
        not_tried()


def test_what_is_on_trial_tries_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that computes while it is imported would else be tried without end."""
    monkeypatch.setenv(ON_TRIAL, "1")
    not_tried()


def test_plugins_of_nnc_itself_are_not_tried(site: Path) -> None:
    info = site / "nnc_fake_break-1.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nnc_cpu\nVersion: 1.0\n")
    not_tried()


@posix
def test_a_child_that_cannot_start_says_nothing_about_the_plugin(site: Path, tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o700)
    for program in (broken, tmp_path / "python-that-is-not-there"):
        monkeypatch.setattr(sys, "executable", str(program))
        assert Trials(None).ending(installed(), "import") is None
