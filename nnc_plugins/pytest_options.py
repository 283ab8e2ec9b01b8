"""Options of the conformance kit, known to every pytest run: pytest reads its command line before it imports
the kit.

Nothing else happens here, because the pytest of every project in the environment loads this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nnc", "nnc: conformance of device plugins")
    group.addoption("--nnc-device", default="cpu:0", metavar="ID",
                    help="device to test, such as opencl:0 (default: cpu:0)")
    group.addoption("--nnc-xfails", default=None, metavar="FILE",
                    help="file of tests expected to fail: (part of) a name on each line, # for comments")
