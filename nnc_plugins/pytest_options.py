"""Options of the conformance kit, known to every pytest run: pytest reads its command line before it imports
the kit.

Nothing else happens here, unless it is asked for, because the pytest of every project in the environment loads this
module.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import pytest

MANY = 1_000_000
"""Processes that may end before a run gives up."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nnc", "nnc: conformance of device plugins")
    group.addoption("--nnc-device", default="cpu:0", metavar="ID",
                    help="device to test, such as opencl:0 (default: cpu:0)")
    group.addoption("--nnc-xfails", default=None, metavar="FILE",
                    help="file of tests expected to fail: (part of) a name on each line, # for comments")
    group.addoption("--nnc-one-dtype-in", default=1, type=_count, metavar="N",
                    help="try each operator in float32 and in one of N of its others (default: 1)")
    group.addoption("--nnc-coverage", action="store_true",
                    help="print what the cases of each operator cover, and how much of its bound each has used")
    group.addoption("--nnc-report", default=None, metavar="FILE",
                    help="write as JSON which operators pass, which run on the host, and how long some work takes "
                         "beside NumPy")
    group.addoption("--nnc-isolate", action="store_true",
                    help="run tests in a process that is started anew when one of them ends it; needs pytest-xdist")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


@pluggy.HookimplMarker("pytest")(wrapper=True)  # before xdist looks at its options
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    if config.getoption("--nnc-isolate") and not hasattr(config, "workerinput"):
        if not config.pluginmanager.hasplugin("xdist"):
            from pytest import UsageError

            raise UsageError("--nnc-isolate needs pytest-xdist: pip install pytest-xdist")
        config.option.numprocesses = config.option.numprocesses or 1
        config.option.maxworkerrestart = str(MANY)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--nnc-coverage"):
        from nnc_plugins.conformance.report import CoverageReport

        config.pluginmanager.register(CoverageReport(), "nnc-coverage")
    path = config.getoption("--nnc-report")
    if path is not None and not hasattr(config, "workerinput"):
        from nnc_plugins.conformance.device_report import DeviceReport

        config.pluginmanager.register(DeviceReport(config, Path(path)), "nnc-report")
