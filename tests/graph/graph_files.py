"""Graphs saved, and their files rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.io import load_arrays, save_arrays
from nnc_core.type import TensorSpec
from tests.graph.stack import OPTIMISER

OPERATOR = OPTIMISER.operator
F4 = TensorSpec((2, 3), dt.float32)


def rewritten(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The file with another description, and a checksum that is right again."""
    arrays, metadata = load_arrays(path)
    description = json.loads(metadata["nnc.graph"])
    change(description)
    save_arrays(path, arrays, {"nnc.graph": json.dumps(description)})
    return path
