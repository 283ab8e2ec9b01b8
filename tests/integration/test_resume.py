"""A training run that is killed, whenever it is, goes on from its last checkpoint as if nothing had happened."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.devices import devices
from tests.sizes import WHOLE

pytest.importorskip("safetensors.numpy")

KILLS = 4 if WHOLE else 2


class Heard(NamedTuple):
    """What a process said before it ended, and how that came."""

    lines: list[list[str]]
    status: int


def run(path: Path, settings: dict[str, Any], kill_at: tuple[str, int] | None = None, later: float = 0.0) -> Heard:
    """Train in a process of its own; kill it `later` seconds after it has said that word for so many times."""
    command = [sys.executable, "-m", "tests.integration.training_child", str(path), json.dumps(settings)]
    lines: list[list[str]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        left = kill_at[1] if kill_at else 0
        for line in process.stdout:
            lines.append(line.split())
            if kill_at and lines[-1][0] == kill_at[0]:
                left -= 1
                if left == 0:
                    time.sleep(later)
                    process.kill()
        errors = process.stderr.read()
    assert process.returncode in (0, -signal.SIGKILL), errors
    return Heard(lines, process.returncode)


def steps(heard: Heard) -> dict[tuple[str, str], str]:
    """The bits of the loss of each step."""
    return {(words[1], words[2]): words[3] for words in heard.lines if words[0] == "step" and len(words) == 4}


def cases() -> list[Any]:
    first, *others = devices()
    settings = [
        {"device": first, "minimiser": "adagrad", "deterministic": False, "eager": False},
        {"device": first, "minimiser": "momentum", "deterministic": True, "eager": True},
        {"device": others[-1] if others else first, "minimiser": "momentum", "deterministic": True, "eager": False},
    ]
    return [pytest.param(s, id="-".join(str(v) for v in s.values())) for s in settings]


@pytest.mark.parametrize("settings", cases())
def test_killed_and_resumed_is_as_never_killed(settings: dict[str, Any], tmp_path: Path, seed: int) -> None:
    whole = run(tmp_path / "whole.safetensors", settings | {"slow": False})
    assert whole.status == 0
    losses = steps(whole)
    assert len(losses) == 30
    path, draw = tmp_path / "killed.safetensors", random.Random(f"{seed} {settings}")
    seen: dict[tuple[str, str], str] = {}
    kills = in_writing = 0
    while kills < KILLS or not in_writing:
        slow = kills % 2 == 1
        at = ("writing", draw.choice([1, 3])) if slow else ("step", draw.randint(1, 5))  # a save writes file and name
        later, before = draw.uniform(0, 0.02), path.read_bytes() if path.exists() else None
        heard = run(path, settings | {"slow": slow}, at, later)
        print(f"seed {seed}: status {heard.status}, {later:.4f} s after {at}: {heard.lines[-1]}")
        assert steps(heard).items() <= losses.items()
        if heard.status == 0:  # this machine was too slow to kill it in time: once more
            assert heard.lines[-1] == whole.lines[-1]
            path.unlink() if before is None else path.write_bytes(before)
            continue
        kills, seen = kills + 1, seen | steps(heard)
        if heard.lines[-1] == ["writing"] and ["saved"] not in heard.lines:
            in_writing += 1
            assert (path.read_bytes() if path.exists() else None) == before, "the former checkpoint is gone"
    last = run(path, settings | {"slow": False})
    assert last.status == 0
    assert seen | steps(last) == losses
    assert last.lines[-1] == whole.lines[-1], "other weights, or another state"
    assert last.lines[0][0] == "resumed"
