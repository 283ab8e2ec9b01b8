"""What the tests of a session ask of a fixture: code is compiled for those that run, not for those left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest


def parameters(request: pytest.FixtureRequest) -> Sequence[Mapping[str, Any]]:
    """Those of each test that uses the fixture which asks: in the module, or the session, that it is made for."""
    items: list[Any] = request.session.items
    return [item.callspec.params for item in items
            if request.fixturename in getattr(item, "fixturenames", ()) and request.node in item.listchain()]
