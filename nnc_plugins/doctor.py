"""Examines plugins in child processes, so that one that crashes, exits or hangs is a line in a table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nnc_plugins.child import Examined, examined, how_it_ended
from nnc_plugins.discovery import Candidate, find_plugins
from nnc_plugins.marks import Marks
from nnc_plugins.trials import Trials


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
                 marks: Marks | None = None, trials: Trials | None = None) -> Iterator[ProbeResult]:
    """Probe the installed plugins one after another, yielding each result as it comes.

    Plugins that are not to be imported (blocked, incompatible) are listed without a probe.  `marks` and `trials` of
    plugins that have ended processes are forgotten where the plugin works now.
    """
    holders: dict[str, str] = {}
    for candidate in find_plugins(block):
        if candidate.state == "found":
            crashed = _crashed(candidate, marks, trials)
            result = replace(_without_taken(probe(candidate.name, timeout, options), holders), crashed=crashed)
            if marks is not None and result.healthy:
                marks.clear(candidate.name)
            if trials is not None and result.healthy:
                trials.passed(candidate)
            yield result
        else:
            yield ProbeResult(candidate.name, candidate.source, candidate.state, candidate.detail)


def _crashed(candidate: Candidate, marks: Marks | None, trials: Trials | None) -> str:
    """The step in which a plugin has ended a process; "" if it has not."""
    left = None if marks is None else marks.left(candidate.name, candidate.source)
    tried = None if trials is None else trials.known(candidate)
    return left or (tried.step if tried is not None else "")


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
    return _judge(name, examined(name, timeout, options or {}), timeout, time.monotonic() - started)


def _judge(name: str, found: Examined, timeout: float, seconds: float) -> ProbeResult:
    facts = found.facts
    devices = tuple([DeviceProbe(**device) for device in facts["devices"]])
    failed = [f"{device.id}: {device.detail}" for device in devices if device.state != "ok"]
    if not found.finished:
        state = "hung" if found.status is None else "crashed"
        detail = f"{how_it_ended(found.status, timeout)} while {facts.get('step', 'starting')}"
    elif failed and facts["state"] == "ok":
        state, detail = "device failed", "; ".join(failed)
    else:
        state, detail = facts["state"], facts["detail"]
    if state in ("crashed", "hung") and found.stderr:
        detail += f"; its last words: {found.stderr}"
    return ProbeResult(name, facts.get("source", ""), state, detail, devices,
                       tuple(facts.get("diagnosis", ())), found.stderr, seconds)
