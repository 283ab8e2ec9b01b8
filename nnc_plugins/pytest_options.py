"""Options of the conformance kit, known to every pytest run: pytest reads its command line before it imports
the kit.

Nothing else happens here, unless it is asked for, because the pytest of every project in the environment loads this
module.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


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


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--nnc-coverage"):
        from nnc_plugins.conformance.report import CoverageReport

        config.pluginmanager.register(CoverageReport(), "nnc-coverage")
