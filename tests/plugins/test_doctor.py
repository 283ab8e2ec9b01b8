"""The doctor: a plugin may die in any way, its examination does not."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from nnc_plugins.discovery import BLOCK_VARIABLE, PREFIX, find_plugins
from nnc_plugins.doctor import ProbeResult, diagnose_all, probe
from tests.plugins.fixtures.distributions import ROOT, install


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on sys.path, here and in the children."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(ROOT), *sys.path])
    return tmp_path


def states(result: ProbeResult) -> list[tuple[str, str]]:
    return [(device.id, device.state) for device in result.devices]


def test_a_good_plugin_is_opened_and_made_to_work(path: Path) -> None:
    install(path, "good")
    result = probe("good")
    assert (result.name, result.source, result.state) == ("good", "nnc-fake-good 1.0", "ok"), result
    assert result.healthy
    assert states(result) == [("good:0", "ok"), ("good:1", "ok")]
    assert result.devices[1].describe == "good device 1"
    assert result.diagnosis == ("driver 1.2.3",)


def test_options_reach_the_plugin(path: Path) -> None:
    install(path, "good")
    assert states(probe("good", options={"count": 1})) == [("good:0", "ok")]


def test_an_import_that_fails(path: Path) -> None:
    install(path, "import_error")
    result = probe("import_error")
    assert result.state == "import failed"
    assert result.detail == "ModuleNotFoundError: No module named 'a_library_that_is_not_installed'"
    assert not result.healthy


def test_a_plugin_that_fails_can_still_say_why(path: Path) -> None:
    install(path, "hook_error")
    result = probe("hook_error")
    assert result.state == "probe failed"
    assert result.detail == "nnc_devices: OSError: the driver answers with error 999"
    assert result.diagnosis == ("reinstall the driver",)


def test_no_device_is_no_fault(path: Path) -> None:
    install(path, "none")
    result = probe("none")
    assert (result.state, result.diagnosis) == ("no device", ("no card in this machine",))
    assert result.healthy


def test_a_plugin_that_leaves(path: Path) -> None:
    install(path, "exit")
    result = probe("exit")
    assert result.state == "crashed"
    assert result.detail == "left with exit status 3 while listing its devices; its last words: no licence"
    assert result.stderr == "no licence"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_crash_keeps_what_was_found_before_it(path: Path) -> None:
    install(path, "crash")
    result = probe("crash")
    assert (result.state, result.detail) == ("crashed", "killed by SIGSEGV while opening crash:1")
    assert states(result) == [("crash:0", "ok")]
    assert result.source == "nnc-fake-crash 1.0"


def test_a_device_with_the_id_of_another_plugin_is_seen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [candidate.name for candidate in find_plugins()]
    install(path, "good")
    install(path, "thief")
    first, second = (result for result in diagnose_all(block=others) if result.name not in others)
    assert (first.name, first.state, second.name, second.state) == ("good", "ok", "thief", "device failed")
    assert second.detail == ("good:0: plugin 'good', which comes first, offers a device of this id: "
                             "programs take that one")
    assert [(device.id, device.state) for device in second.devices] == [("good:0", "failed"), ("thief:0", "ok")]


def test_a_crash_at_the_very_end_is_seen_too(path: Path) -> None:
    install(path, "late_exit")
    result = probe("late_exit")
    assert (result.state, result.detail) == ("crashed", "left with exit status 134 while shutting down")


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_hang_ends_with_everything_it_started(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, "hang")
    os.mkfifo(path / "pipe")
    monkeypatch.setenv("FAKE_HANG_PIPE", str(path / "pipe"))
    reader = os.open(path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = probe("hang", timeout=5)
        assert (result.state, result.detail) == ("hung", "no answer in 5 s while listing its devices")
        received = b""
        while select.select([reader], [], [], 60)[0] and (part := os.read(reader, 100)):
            received += part
        assert received == b"alive\n"
        assert os.read(reader, 100) == b"", "what the plugin started still holds its end of the pipe"
    finally:
        os.close(reader)


def test_an_endless_computation_is_a_hang(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, "break")
    monkeypatch.setenv("FAKE_BREAK", "listing spin")
    found = probe("break", timeout=3)
    assert (found.state, found.detail) == ("hung", "no answer in 3 s while listing its devices")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell what a process has run")
def test_who_goes_on_slowly_is_not_hung(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps take longer than the timeout together, as all do on a machine that is busy."""
    install(path, "break")
    monkeypatch.setenv("FAKE_BREAK", "listing dawdle")
    assert probe("break", timeout=6).state == "ok"


def test_devices_that_list_and_do_not_work(path: Path) -> None:
    install(path, "wrong")
    result = probe("wrong")
    assert result.state == "device failed"
    assert [device.detail for device in result.devices] == [
        "RuntimeError: cannot build programs",
        "doubled 1000 floats on the device; 999 are wrong, the first at 1: 3.0, expected 2.0",
        "copied 1000 floats to the device and back; 999 are wrong, the first at 1: 0.0, expected 1.0",
        "",
        "added the 1021 numbers of each of 37 rows on the device; 37 are wrong, the first at 0: 23917.5, expected "
        "47835.0",
        "copied 1000 floats to the device and back; 1 are wrong, the first at 999: nan, expected 999.0",
        f"DeviceMemoryError: {40 << 30} bytes asked for",
        "calls itself elsewhere:0",
    ]
    assert [device.state for device in result.devices] == [*["failed"] * 3, "ok", *["failed"] * 4]
    assert "wrong:0: RuntimeError: cannot build programs; wrong:1: doubled" in result.detail


def test_a_plugin_that_is_not_installed() -> None:
    result = probe("nowhere")
    assert (result.state, result.detail) == ("not found", "no plugin named 'nowhere' is installed")


def test_a_plugin_named_by_the_user_is_probed_although_blocked(
        path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, "none")
    monkeypatch.setenv(BLOCK_VARIABLE, "none")
    assert probe("none").state == "no device"


def test_all_plugins_one_after_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [candidate.name for candidate in find_plugins()]
    for name in ("exit", "import_error", "none"):
        install(path, name)
    install(path, "never_imported", groups=(f"{PREFIX}7",))
    monkeypatch.setenv("FAKE_IMPORT_MARK", str(path / "imported"))
    results = {result.name: result.state for result in diagnose_all(block=[*others, "none"])}
    assert {name: state for name, state in results.items() if name not in others} == {
        "exit": "crashed", "import_error": "import failed",
        "never_imported": "incompatible", "none": "blocked",
    }  # fmt: skip
    assert not (path / "imported").exists()
