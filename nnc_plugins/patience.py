"""Waiting for a process that may hang, on a machine that may be slow."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

_LOOK = 0.05
"""Seconds between two looks."""
_IDLE = 0.01
"""A process that uses less of a processor than this is taken to wait."""


def wait_patiently(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit status; None once it has used so many seconds of a processor, or has done nothing for as long.

    What counts is the child's own time, as a process that has to share its processor with many others is not hung.
    """
    since, used_then = time.monotonic(), 0.0
    while True:
        try:
            return child.wait(_LOOK)
        except subprocess.TimeoutExpired:
            now, used = time.monotonic(), _processor_seconds(child.pid)
        if used is not None and used - used_then > _IDLE * seconds:
            since, used_then = now, used
        if now - since > seconds or (used or 0.0) > seconds:
            return None


def _processor_seconds(pid: int) -> float | None:
    """Seconds that a process and those it has waited for have run; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None
