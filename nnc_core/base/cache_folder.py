"""The folder of all that nnc keeps on disk between processes."""

from __future__ import annotations

import os
from pathlib import Path

from nnc_core.base.config import config

VARIABLE = "NNC_CACHE_FOLDER"
PLUGIN_MARKS = "plugins"
"""The folder there in which plugins are marked while they are in use for the first time."""
PLUGIN_TRIALS = "trials"
"""The cache there of what came of trying new plugins."""


def cache_folder() -> Path:
    """The folder that `config.cache_folder` names, or the variable NNC_CACHE_FOLDER, or the system for its user."""
    chosen = config.cache_folder or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # not when nnc is imported: few processes ask for it

    return user_cache_path("nnc")
