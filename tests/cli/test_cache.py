"""`nnc cache`: what is kept on disk is shown and removed."""

from __future__ import annotations

from pathlib import Path

import nnc_core as nnc
from nnc_core.base.disk_cache import disk_cache, key_of
from tests.cli.conftest import Run


def test_what_is_kept_is_shown_and_cleared(run: Run, tmp_path: Path) -> None:
    with nnc.config.using(cache_folder=tmp_path, cache_limit=3 << 20):
        cache = disk_cache("things")
        assert cache
        for n in range(2):
            cache.write(key_of(bytes([n])), bytes(1 << 20))
        (tmp_path / "mnist").mkdir()
        result = run("cache")
        assert result.output.splitlines() == [str(tmp_path), f"  {'things':<20} 2.0 MiB in 2 entries, at most 3.0 MiB"]
        result = run("cache", "clear")
        assert result.output == f"{cache.path}: 2.0 MiB removed\n"
        assert not [*cache.entries()]
        assert "0 entries" in run("cache").output


def test_nothing_is_kept(run: Run, tmp_path: Path) -> None:
    with nnc.config.using(cache_folder=tmp_path / "none"):
        assert run("cache").output == f"{tmp_path / 'none'}\n"
        assert run("cache", "clear").exit_code == 0
    assert not (tmp_path / "none").exists()
