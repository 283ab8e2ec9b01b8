"""Some files are made on one device and read on another."""

from __future__ import annotations

from tests.devices import device, parametrise

__all__ = ["device"]

pytest_generate_tests = parametrise
