"""A child process that examines one plugin, and may die of it.

It (`nnc_plugins.examination`) writes what it finds to a file step by step; whatever ends it, the file says how far it
came.  Its output goes to files, not pipes: a grandchild that outlives it would keep a pipe open.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from nnc_plugins.discovery import BLOCK_VARIABLE
from nnc_plugins.patience import wait_patiently

ON_TRIAL = "NNC_PLUGIN_ON_TRIAL"
"""A variable of such processes, and of those that they start: no plugin is tried there."""
Extent: TypeAlias = Literal["import", "listing"]
"""How far a trial goes: what every program does with a plugin, or also listing its devices."""
_CHILD = ("import json, sys; request = sys.argv[1]; sys.path[:] = json.loads(request)['path']; "
          "from nnc_plugins.examination import main; main(request)")


class Examined(NamedTuple):
    """The facts that a child has reported, later ones over earlier ones, those of devices in a list; its exit status
    (None: it had to be killed) and the last line that it wrote to stderr."""

    facts: dict[str, Any]
    status: int | None
    stderr: str

    @property
    def finished(self) -> bool:
        """True if it came to its end by itself."""
        return self.status == 0 and bool(self.facts.get("end"))


def examined(name: str, timeout: float, options: Mapping[str, Any], extent: Extent | None = None) -> Examined:
    """Examine a plugin as far as `extent` says, else wholly; OSError if no process can be started.

    `timeout` is in seconds: those that the plugin itself computes, or does nothing.
    """
    with tempfile.TemporaryDirectory(prefix="nnc-doctor-", ignore_cleanup_errors=True) as folder:
        report, complaints = Path(folder, "report"), Path(folder, "stderr")
        path = [entry for entry in sys.path if isinstance(entry, str)]
        request = {"name": name, "options": dict(options), "report": str(report), "path": path, "extent": extent}
        status = _run(json.dumps(request), complaints, timeout)
        return Examined(_read(report), status, _last_line(complaints))


def how_it_ended(status: int | None, timeout: float) -> str:
    """Words for the end of a process, by its exit status (None: it had to be killed)."""
    if status is None:
        return f"no answer in {timeout:g} s"
    if status >= 0:
        return f"left with exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _run(request: str, complaints: Path, timeout: float) -> int | None:
    """The exit status of the child; None if it had to be killed."""
    environment = {key: value for key, value in os.environ.items() if key != BLOCK_VARIABLE} | {ON_TRIAL: "1"}
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
            facts["devices"].append(facts_of_line.pop("device"))
        facts.update(facts_of_line)
    return facts


def _last_line(complaints: Path, limit: int = 65536) -> str:
    with complaints.open("rb") as file:
        file.seek(max(0, complaints.stat().st_size - limit))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
