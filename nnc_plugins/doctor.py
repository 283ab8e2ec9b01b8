"""Examines plugins in child processes, so that one that crashes, exits or hangs is a line in a table.

The child (`nnc_plugins.examination`) writes what it finds to a file step by step; whatever ends it, the file
says how far it came.  Its output goes to files, not pipes: a grandchild that outlives it would keep a pipe
open.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nnc_plugins.discovery import BLOCK_VARIABLE, find_plugins
from nnc_plugins.marks import Marks
from nnc_plugins.patience import wait_patiently

_CHILD = ("import json, sys; request = sys.argv[1]; sys.path[:] = json.loads(request)['path']; "
          "from nnc_plugins.examination import main; main(request)")


@dataclass(frozen=True, slots=True)
class DeviceProbe:
    """A device that was opened and made to work; `state` is "ok" or "failed", `detail` what failed.

    `testing`: it is there for tests alone.  `spec` is its DeviceSpec as JSON values (sets as sorted lists);
    empty where it could not be opened.
    """

    id: str
    describe: str
    state: str
    detail: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    testing: bool = False
    uid: str = ""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The outcome of the probe of one plugin.

    `state` is that of the plugin's record ("ok", "no device", "import failed", "probe failed",
    "incompatible", "blocked") or "device failed" (one of `devices` did), "crashed" (by a signal, or by
    leaving), "hung", "not found".  `diagnosis` is what the plugin says itself; `stderr` the last line it
    wrote there; `seconds` the time it took.  `crashed` is the step in which it has ended another process before, so
    that programs leave it alone; that is over if it works now.
    """

    name: str
    source: str
    state: str
    detail: str = ""
    devices: tuple[DeviceProbe, ...] = ()
    diagnosis: tuple[str, ...] = ()
    stderr: str = ""
    seconds: float = 0.0
    crashed: str = ""

    @property
    def healthy(self) -> bool:
        """Nothing to repair; having no device is no fault of a plugin."""
        return self.state in ("ok", "no device")


def diagnose_all(timeout: float = 60, *, block: Iterable[str] = (), options: Mapping[str, Any] | None = None,
                 marks: Marks | None = None) -> Iterator[ProbeResult]:
    """Probe the installed plugins one after another, yielding each result as it comes.

    Plugins that are not to be imported (blocked, incompatible) are listed without a probe.  `marks` of plugins that
    have ended processes are removed where the plugin works now.
    """
    holders: dict[str, str] = {}
    for candidate in find_plugins(block):
        if candidate.state == "found":
            left = None if marks is None else marks.left(candidate.name, candidate.source)
            result = replace(_without_taken(probe(candidate.name, timeout, options), holders), crashed=left or "")
            if marks is not None and result.healthy:
                marks.clear(candidate.name)
            yield result
        else:
            yield ProbeResult(candidate.name, candidate.source, candidate.state, candidate.detail)


def _without_taken(result: ProbeResult, holders: dict[str, str]) -> ProbeResult:
    """The result with a fault for each device whose id another plugin has, by `holders`, which learns the others."""
    taken = {}
    for device in result.devices:
        if holders.setdefault(device.id, result.name) != result.name:
            taken[device.id] = (f"plugin {holders[device.id]!r}, which comes first, offers a device of this id: "
                                "programs take that one")
    if not taken:
        return result
    devices = tuple([replace(device, state="failed", detail=taken[device.id]) if device.id in taken else device
                     for device in result.devices])
    detail = "; ".join(f"{id}: {fault}" for id, fault in taken.items())
    if result.state != "ok":
        return replace(result, devices=devices)
    return replace(result, devices=devices, state="device failed", detail=detail)


def probe(name: str, timeout: float = 60, options: Mapping[str, Any] | None = None) -> ProbeResult:
    """Load one plugin in a child process, list its devices, and open and use each of them.

    `timeout` is in seconds, for all of it: those that the plugin itself computes, or does nothing.  `options` (JSON
    values) are core's settings.  A plugin named here is probed even if NNC_PLUGINS_BLOCK names it.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nnc-doctor-", ignore_cleanup_errors=True) as folder:
        report, complaints = Path(folder, "report"), Path(folder, "stderr")
        path = [entry for entry in sys.path if isinstance(entry, str)]
        request = {"name": name, "options": dict(options or {}), "report": str(report), "path": path}
        status = _run(json.dumps(request), complaints, timeout)
        facts, stderr = _read(report), _last_line(complaints)
    return _judge(name, facts, status, stderr, timeout, time.monotonic() - started)


def _run(request: str, complaints: Path, timeout: float) -> int | None:
    """The exit status of the child; None if it had to be killed."""
    environment = {key: value for key, value in os.environ.items() if key != BLOCK_VARIABLE}
    with complaints.open("wb") as stderr:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD, request], env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        try:
            return wait_patiently(child, timeout)
        finally:
            if child.poll() is None:
                _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and, where the system knows process groups, its children."""
    if sys.platform == "win32":
        child.kill()
    else:
        os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:  # stuck inside the driver: the system ends it when the driver lets go
        return


def _read(report: Path) -> dict[str, Any]:
    """The facts of a report, later ones over earlier ones, devices collected; a line cut short is left
    out."""
    facts: dict[str, Any] = {"devices": []}
    for line in report.read_text(encoding="utf-8").splitlines() if report.exists() else ():
        try:
            facts_of_line = json.loads(line)
        except ValueError:
            break
        if "device" in facts_of_line:
            facts["devices"].append(DeviceProbe(**facts_of_line.pop("device")))
        facts.update(facts_of_line)
    return facts


def _last_line(complaints: Path, limit: int = 65536) -> str:
    with complaints.open("rb") as file:
        file.seek(max(0, complaints.stat().st_size - limit))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _judge(name: str, facts: dict[str, Any], status: int | None, stderr: str, timeout: float,
           seconds: float) -> ProbeResult:
    devices = tuple(facts["devices"])
    failed = [f"{device.id}: {device.detail}" for device in devices if device.state != "ok"]
    step = facts.get("step", "starting")
    if status is None:
        state, detail = "hung", f"no answer in {timeout:g} s while {step}"
    elif status != 0 or not facts.get("end"):
        state, detail = "crashed", f"{_ending(status)} while {step}"
    elif failed and facts["state"] == "ok":
        state, detail = "device failed", "; ".join(failed)
    else:
        state, detail = facts["state"], facts["detail"]
    if state in ("crashed", "hung") and stderr:
        detail += f"; its last words: {stderr}"
    return ProbeResult(name, facts.get("source", ""), state, detail, devices,
                       tuple(facts.get("diagnosis", ())), stderr, seconds)


def _ending(status: int) -> str:
    if status >= 0:
        return f"left with exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
