"""Every way to break in every place: what the doctor says, and what programs see where the plugin is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from nnc_plugins.doctor import probe
from tests.plugins.fixtures.distributions import ROOT, Program, install, program_beside

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

STEPS = {"import": "being imported", "listing": "listing its devices", "opening": "opening break:0",
         "launch": "running a kernel on break:0"}
RAISED = {"raise": "RuntimeError: broken on purpose", "exit": "SystemExit: 3"}
ENDED = {"leave": "left with exit status 3", "segfault": "killed by SIGSEGV", "abort": "killed by SIGABRT"}
STATES = {"import": ("import failed", ""), "listing": ("probe failed", "nnc_devices: "),
          "opening": ("device failed", "break:0: "), "launch": ("device failed", "break:0: ")}
PATIENCE = 6.0

READS = "print(nnc.ones(2, device='strict:0').tolist())"
USES = f"""
import traceback
import nnc_core as nnc
{READS}
try:
    print((nnc.ones(2, device="break:0") + 1).tolist())
except BaseException as error:
    print("".join(traceback.format_exception_only(error)))
{READS}
"""
ALL = "import nnc_core as nnc; print([d.id for d in nnc.devices()])"
CRASHED = ("plugin break (nnc-fake-break 1.0): blocked, crashed last time: a process ended while it was {step}; "
           "`nnc devices` tries it")


def expected(place: str, way: str) -> tuple[str, str]:
    """State and detail that the doctor gives."""
    if way == "hang":
        return "hung", f"no answer in {PATIENCE:g} s while {STEPS[place]}; its last words: hanging"
    if way in ENDED:
        return "crashed", f"{ENDED[way]} while {STEPS[place]}"
    state, before = STATES[place]
    return state, before + RAISED[way]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    yield program_beside(tmp_path, "break")


@pytest.mark.parametrize(("place", "way"), [*product(STEPS, (*RAISED, *ENDED, "hang"))])
def test_the_doctor_tells_how_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, way: str) -> None:
    monkeypatch.setattr(sys, "path", [str(install(tmp_path, "break")), str(ROOT), *sys.path])
    monkeypatch.setenv("FAKE_BREAK", f"{place} {way}")
    found = probe("break", timeout=PATIENCE if way == "hang" else 60)
    assert (found.state, found.detail) == expected(place, way)
    assert not found.healthy


@pytest.mark.parametrize(("place", "way"), [*product(STEPS, RAISED)])
def test_what_raises_is_an_error_of_its_own_device(program: Program, place: str, way: str) -> None:
    """It names the plugin, or the device where that is open, and the next step; other devices work before and after."""
    done = program(USES, f"{place} {way}")
    first, *error, last = done.stdout.splitlines()
    assert (done.returncode, first, last) == (0, "[1.0, 1.0]", "[1.0, 1.0]"), done.stderr
    told = "\n".join(error) + done.stderr
    named = {"launch raise": ("device: break:0",), "launch exit": ()}.get(
        f"{place} {way}", ("plugin break (nnc-fake-break 1.0)", "nnc devices"))
    assert all(part in told for part in (*named, RAISED[way]))


@pytest.mark.parametrize("place", [place for place in STEPS if place != "import"])
def test_who_uses_another_device_is_not_touched(program: Program, place: str) -> None:
    done = program(f"import nnc_core as nnc\n{READS}", f"{place} segfault")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1.0, 1.0]\n", "")


@pytest.mark.parametrize(("place", "way"), [*product(("import", "passes", "listing", "opening"), (*ENDED, "hang"))])
def test_what_ends_a_process_does_so_once(program: Program, place: str, way: str) -> None:
    """Also in opening, where all that there is is listed."""
    if way == "hang":
        program.kill_when_it_hangs(ALL, f"{place} {way}")
    else:
        assert program(ALL, f"{place} {way}").returncode != 0
    again = program(ALL, f"{place} {way}")
    assert (again.returncode, again.stdout) == (0, "['strict:0']\n"), again.stderr
    assert CRASHED.format(step=STEPS.get(place, "running nnc_passes")) in again.stderr
