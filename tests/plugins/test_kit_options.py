"""Options of the kit: a report of a device, and tests in a process that may die of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from nnc_core.base.cache_folder import VARIABLE
from tests.plugins.fixtures.distributions import ROOT, install


def kit(folder: Path, device: str, *options: str, **environment: str) -> str:
    """What a run of the kit prints."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs",
               "nnc_plugins.conformance", f"--nnc-device={device}", *options]
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": path, VARIABLE: str(folder / "cache"), **environment})
    return done.stdout + done.stderr


def test_a_report_says_what_passes_and_how_long_some_work_takes(tmp_path: Path) -> None:
    output = kit(tmp_path, "cpu:0", "-k", "test_operators and (add-float32 or eigh-float32) and eager",
                 "--nnc-report=report.json")
    assert "report written to report.json" in output, output
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["device"]["id"] == "cpu:0"
    operators = report["operators"]
    assert {"add", "eigh"} <= {*operators["passed"]} and operators["failed"] == [] and "sin" in operators["not run"]
    assert operators["declared"] > 200 and "eigh" in operators["without a loop nest"]
    assert report["tests"]["passed"] >= 2
    assert all(seconds["device"] > 0 and seconds["numpy"] > 0 for seconds in report["speed"].values())


def test_a_kernel_that_crashes_fails_its_test_alone(tmp_path: Path) -> None:
    install(tmp_path, "break")
    output = kit(tmp_path, "break:0", "--nnc-isolate", "-k",
                 "test_work_runs_in_the_order or test_transfers_run_in_the_order or test_done_is_done",
                 FAKE_BREAK="launch segfault")
    assert re.search(r"1 failed, 2 passed", output), output
    assert "crashed while running" in output and "test_work_runs_in_the_order_of_its_stream" in output
