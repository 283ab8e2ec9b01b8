from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.nn.network import device
from tests.semantics.table import count

__all__ = ["device"]


@pytest.fixture(autouse=True)
def _on_device(device: str) -> None:
    """Every test here runs on the chosen device."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What belongs to the matrix of configurations is counted in the table that a run prints at its end."""
    for item in items:
        if "tests/optim" in item.nodeid and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            _count(item, item.callspec.params)


def _count(item: pytest.Function, given: Mapping[str, Any]) -> None:
    name, on = item.originalname, str(given.get("on", ""))
    if name == "test_each_layer_eager_and_compiled":
        from tests.optim.layer_networks import NETWORKS

        count(item, NETWORKS[given["case"]].family, on, given["dtype"], given["case"])
    elif name in ("test_each_option_eager_compiled_and_in_numpy", "test_each_option_in_float32"):
        from tests.optim.test_owl import EXTRA

        kind = "other options" if given["option"] in EXTRA else "Owl's options"
        count(item, kind, on, "float32" if "float32" in name else "float64", given["option"])
    elif name == "test_eager_and_compiled_agree_on_every_device":
        count(item, "minimisers", on, given["dtype"], given["case"])
    elif name in ("test_minimise_fun", "test_minimise_weight", "test_minimise_network"):
        count(item, "Owl's options", on, given["dtype"], name.removeprefix("test_"))
    elif name == "test_inference_of_every_layer":
        count(item, "inference", "", "", given["case"])
