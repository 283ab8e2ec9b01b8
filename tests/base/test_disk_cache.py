"""Caches on disk: what is kept is found by every process, and nothing that is wrong there does harm."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nnc_core as nnc
from nnc_core.base import disk_cache
from nnc_core.base.cache_folder import VARIABLE, cache_folder
from nnc_core.base.disk_cache import TAG, DiskCache, disk_caches, key_of
from nnc_core.base.errors import FallbackWarning

KEYS = [key_of(b"entry", bytes([n])) for n in range(40)]
unprivileged = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0,
                                  reason="permissions bind nobody here")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with nnc.config.using(cache_folder=tmp_path / "caches"):
        yield tmp_path / "caches" / "things"


def opened() -> DiskCache:
    """As another process would open it."""
    disk_cache._cache_in.cache_clear()
    found = disk_cache.disk_cache("things")
    assert found is not None
    return found


def filled(count: int = 1, nbytes: int = 10) -> DiskCache:
    cache = opened()
    for key in KEYS[:count]:
        cache.write(key, bytes(nbytes))
    return cache


def test_what_is_written_is_read_by_the_next_process(folder: Path) -> None:
    cache = opened()
    assert cache.read(KEYS[0]) is None and not folder.exists()
    cache.write(KEYS[0], b"content")
    cache.write(KEYS[1], b"")
    assert opened().read(KEYS[0]) == b"content"
    assert opened().read(KEYS[1]) == b""
    assert opened().read(KEYS[2]) is None
    opened().write(KEYS[0], b"newer")
    assert opened().read(KEYS[0]) == b"newer"


def test_the_folder_is_the_users_own(folder: Path) -> None:
    before = os.umask(0)
    try:
        filled()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / KEYS[0]).stat().st_mode) == 0o600
    assert (folder / TAG).read_bytes().startswith(b"Signature: 8a477f597d28d172789f06886806bc55")


def test_keys_tell_their_parts_apart() -> None:
    assert len({key_of(b"ab", b"c"), key_of(b"a", b"bc"), key_of(b"abc"), key_of(b"abc", b"")}) == 4


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40], ids=["empty", "truncated", "overwritten"])
def test_damaged_entries_are_made_again(folder: Path, damage: bytes) -> None:
    filled(2)
    for key in KEYS[:2]:
        (folder / key).write_bytes(damage)
    cache = opened()
    with pytest.warns(FallbackWarning, match="damaged") as caught:
        assert cache.read(KEYS[0]) is None and cache.read(KEYS[1]) is None
    assert len(caught) == 1
    cache.write(KEYS[0], b"again")
    assert opened().read(KEYS[0]) == b"again"


def test_an_entry_under_the_name_of_another_is_damaged(folder: Path) -> None:
    cache = filled(2)
    os.replace(folder / KEYS[0], folder / KEYS[1])
    with pytest.warns(FallbackWarning, match="damaged"):
        assert cache.read(KEYS[1]) is None


def test_every_bit_counts(folder: Path) -> None:
    cache = filled(1, nbytes=3)
    whole = (folder / KEYS[0]).read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for place in range(len(whole) * 8):
            broken = bytearray(whole)
            broken[place // 8] ^= 1 << place % 8
            (folder / KEYS[0]).write_bytes(broken)
            assert cache.read(KEYS[0]) is None


def test_what_was_not_used_for_longest_goes(folder: Path) -> None:
    with nnc.config.using(cache_limit=1000):
        cache = filled(8, nbytes=84)  # of 100 bytes each, with the checksums
        for age, key in enumerate(KEYS[:8]):
            os.utime(folder / key, (2e9 - 5000 * age, 1e9 - 5000 * age))
        assert cache.read(KEYS[7]) is not None, "the oldest is used again"
        for key in KEYS[8:11]:
            cache.write(key, bytes(84))
        left = {Path(entry.path).name for entry in cache.entries()}
        assert sum(entry.nbytes for entry in cache.entries()) <= 1000
    assert left.isdisjoint(KEYS[5:7]) and left.issuperset([*KEYS[:4], KEYS[7], *KEYS[8:11]])


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    with nnc.config.using(cache_limit=50):
        assert not [*filled(1, nbytes=51).entries()]


def test_no_limit_is_no_cache(folder: Path) -> None:
    with nnc.config.using(cache_limit=0):
        assert disk_cache.disk_cache("things") is None
    assert not folder.exists()


def test_what_killed_processes_left_goes(folder: Path) -> None:
    cache = filled()
    old, new = folder / ".nnc-0.tmp", folder / ".nnc-1.tmp"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1e9, 1e9))
    with nnc.config.using(cache_limit=1000):
        cache.write(KEYS[1], bytes(100))
    assert not old.exists() and new.exists()
    cache.clear()
    assert not new.exists()


def test_clearing_leaves_what_is_not_of_the_cache(folder: Path) -> None:
    cache = filled(3)
    (folder / "mine.txt").write_text("kept")
    [found] = disk_caches()
    assert found.path == folder
    assert found.clear() == 3 * 26 and not [*cache.entries()]
    assert (folder / "mine.txt").read_text() == "kept"
    cache.write(KEYS[0], b"on it goes")
    assert cache.read(KEYS[0]) == b"on it goes"


def test_folders_without_a_mark_are_not_caches(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / KEYS[0]).write_bytes(b"whose?")
    assert disk_caches() == []


def _of_another(status: os.stat_result) -> os.stat_result:
    return os.stat_result((*status[:4], status.st_uid + 1, *status[5:10]))


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users have no numbers here")
@pytest.mark.parametrize("what", ["the folder", "the entry"])
def test_what_belongs_to_others_is_left_alone(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = filled()
    if what == "the folder":
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        cache = opened()
    else:
        status = os.fstat
        monkeypatch.setattr(os, "fstat", lambda file: _of_another(status(file)))
    with pytest.warns(FallbackWarning, match="belongs to another user.*cache_folder") as caught:
        assert cache.read(KEYS[0]) is None
        if what == "the folder":
            cache.write(KEYS[1], b"")
    assert len(caught) == 1
    assert not (folder / KEYS[1]).exists()


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_left_alone(folder: Path, mode: int) -> None:
    filled()
    folder.chmod(mode)
    cache = opened()
    with pytest.warns(FallbackWarning, match=f"chmod go-w {folder}") as caught:
        assert cache.read(KEYS[0]) is None
        cache.write(KEYS[1], b"")
    assert len(caught) == 1 and not (folder / KEYS[1]).exists()
    folder.chmod(0o750)
    assert opened().read(KEYS[0]) is not None


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed here")
def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    cache = filled()
    (folder / KEYS[0]).rename(tmp_path / "elsewhere")
    (folder / KEYS[0]).symlink_to(tmp_path / "elsewhere")
    with pytest.warns(FallbackWarning, match="nothing can be read"):
        assert cache.read(KEYS[0]) is None


def test_a_folder_that_cannot_be_made_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "caches").write_text("a file is in the way")
    cache = opened()
    with pytest.warns(FallbackWarning) as caught:
        for key in KEYS[:3]:
            assert cache.read(key) is None
            cache.write(key, b"")
    assert {str(w.message).split(" can be ")[1][:4] for w in caught} == {"read", "kept"} and len(caught) == 2


@unprivileged
def test_a_folder_that_is_only_read_is_said_once(folder: Path) -> None:
    filled()
    folder.chmod(0o500)
    try:
        cache = opened()
        assert cache.read(KEYS[0]) == bytes(10)
        with pytest.warns(FallbackWarning, match=r"nothing can be kept.*cache_limit = 0") as caught:
            cache.write(KEYS[1], b"")
            cache.write(KEYS[2], b"")
        assert len(caught) == 1
    finally:
        folder.chmod(0o700)


def test_a_full_disk_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    cache = filled()
    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(FallbackWarning, match=r"No space left.*compiled again") as caught:
        cache.write(KEYS[1], b"")
        cache.write(KEYS[2], b"")
    assert len(caught) == 1
    assert len(list(cache.path.iterdir())) == 2, "nothing half is left"
    assert cache.read(KEYS[0]) == bytes(10)


def test_threads_write_and_read_at_once() -> None:
    cache = opened()

    def work(n: int) -> None:
        key = KEYS[n % 7]
        cache.write(key, key.encode() * 1000)
        assert cache.read(key) == key.encode() * 1000

    with nnc.config.using(cache_limit=200_000), ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))


WRITER = """
import sys
import nnc_core as nnc
from nnc_core.base.disk_cache import disk_cache, key_of
nnc.config.cache_limit = 20_000
cache = disk_cache("things")
for n in range(300):
    key = key_of(b"shared", bytes([n % 13]))
    content = key.encode() * 40
    assert cache.read(key) in (None, content)
    cache.write(key, content)
"""


def test_processes_write_read_and_remove_at_once(folder: Path) -> None:
    environment = {**os.environ, VARIABLE: str(folder.parent)}
    running = [subprocess.Popen([sys.executable, "-W", "error", "-c", WRITER], env=environment) for _ in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "by variable"))
    assert cache_folder() == tmp_path / "caches", "the setting comes first"
    with nnc.config.using(cache_folder=None):
        assert cache_folder() == tmp_path / "by variable"
        monkeypatch.delenv(VARIABLE)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache_folder().name in ("nnc", "Cache")
