"""`nnc devices`: broken plugins are lines, and nothing of them reaches this process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from nnc_core.base.config import config
from nnc_core.cli import devices
from nnc_core.cli.devices import default_device, next_step
from nnc_plugins.discovery import BLOCK_VARIABLE, find_plugins
from nnc_plugins.doctor import DeviceProbe, ProbeResult
from tests.cli.conftest import Run
from tests.plugins.fixtures.distributions import ROOT, install

BROKEN = {"import_error": "import failed", "exit": "crashed", "wrong": "device failed"}


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on sys.path, here and in the children; of what is installed only the builtin plugin is asked."""
    others = [candidate.name for candidate in find_plugins() if candidate.name != "builtin"]
    monkeypatch.setenv(BLOCK_VARIABLE, ",".join(others))
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(ROOT), *sys.path])
    return tmp_path


def test_what_works(run: Run) -> None:
    result = run("devices", "--all")
    assert result.exit_code == 0
    assert "builtin  nnc-core" in result.output
    assert "  strict:0 " in result.output and "8 GiB" in result.output
    assert "all dtypes but complex128, float64" in result.output
    assert result.output.endswith("default device: strict:0\n")


def test_devices_for_tests_are_listed_on_request(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, "good")
    found = [*devices.diagnose_all(options=config.as_dict())]  # asked once, shown in four ways
    monkeypatch.setattr(devices, "diagnose_all", lambda timeout, **_: iter(found))
    few, many = run("devices").output, run("devices", "--all").output
    assert "good:0" in few and "strict:0 " not in few.partition("default device")[0] and "null:0" not in few
    assert "8 devices for tests: --all lists them" in few
    assert "good:0" in many and "  strict:0 " in many and "  null:0 " in many
    told = [json.loads(run("devices", "--json", *more).output) for more in ((), ("--all",))]
    ids = [{d["id"] for p in report["plugins"] for d in p["devices"]} for report in told]
    assert ids[0] == {"good:0", "good:1", "strict:0"} and {"null:0", "strict-async:0"} <= ids[1]  # the default


def test_broken_plugins_are_lines(run: Run, path: Path) -> None:
    for name in BROKEN:
        install(path, name)
    result = run("devices")
    assert result.exit_code == 0
    for name, state in BROKEN.items():
        assert f"{name}  nnc-fake-{name} 1.0  {state}" in result.output
    assert "No module named 'a_library_that_is_not_installed'" in result.output
    assert f"{BLOCK_VARIABLE}=exit" in result.output
    assert "RuntimeError: cannot build programs" in result.output
    assert "strict:0" in result.output


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_plugin_that_hangs_is_a_line(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, "hang")
    os.mkfifo(path / "pipe")
    monkeypatch.setenv("FAKE_HANG_PIPE", str(path / "pipe"))
    reader = os.open(path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = run("devices", "--timeout", 5)
    finally:
        os.close(reader)
    assert "hang  nnc-fake-hang 1.0  hung" in result.output
    assert "no answer in 5 s while listing its devices" in result.output
    assert f"{BLOCK_VARIABLE}=hang" in result.output
    assert result.exit_code == 0


def test_json(run: Run, path: Path) -> None:
    install(path, "good")
    install(path, "import_error")
    result = run("devices", "--json")
    assert result.exit_code == 0
    report = json.loads(result.output)
    plugins = {plugin["name"]: plugin for plugin in report["plugins"]}
    assert report["default"] == "strict:0"
    assert plugins["import_error"]["state"] == "import failed"
    assert plugins["import_error"]["healthy"] is False and plugins["import_error"]["next_step"]
    first = plugins["good"]["devices"][0]
    assert (first["id"], first["state"], first["spec"]["name"]) == ("good:0", "ok", "fake")
    assert "float32" in first["spec"]["dtypes"]


def test_where_nothing_works_the_status_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ProbeResult("broken", "broken 1.0", "crashed", "killed by SIGSEGV")
    null = ProbeResult("counting", "counting 1.0", "ok", devices=(DeviceProbe("null:0", "counts", "ok", ""),))
    monkeypatch.setattr(devices, "diagnose_all", lambda timeout, **_: iter([broken, null]))
    result = run("devices")
    assert result.exit_code == 1
    assert "no device works" in result.output
    assert json.loads(run("devices", "--json").output)["default"] is None


def test_text_of_a_plugin_is_no_markup(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = ProbeResult("odd", "odd [bold]1.0", "probe failed", "[/red] is what it says")
    monkeypatch.setattr(devices, "diagnose_all", lambda timeout, **_: iter([odd]))
    output = run("devices").output
    assert "odd [bold]1.0" in output and "[/red] is what it says" in output


def test_the_default_is_the_first_preferred_device_that_works() -> None:
    def result(*found: tuple[str, str]) -> ProbeResult:
        return ProbeResult("p", "p 1.0", "ok", devices=tuple(DeviceProbe(id, "", state, "") for id, state in found))

    assert default_device([result(("strict:0", "ok")), result(("opencl:0", "ok"), ("opencl:1", "ok"))]) == "opencl:0"
    assert default_device([result(("cpu:0", "failed"), ("strict:0", "ok"))]) == "strict:0"
    assert default_device([result(("other:0", "ok"))]) is None


@pytest.mark.parametrize("state", ["no device", "import failed", "probe failed", "device failed", "incompatible",
                                   "blocked", "crashed", "hung"])
def test_every_state_that_is_not_in_order_has_a_next_step(state: str) -> None:
    step = next_step(ProbeResult("name", "nnc-name 1.0", state))
    assert step and "{" not in step
    assert next_step(ProbeResult("name", "nnc-name 1.0", "ok")) == ""
