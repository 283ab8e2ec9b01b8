from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nnc_core.base.atomic import open_atomically, write_atomically
from nnc_core.base.errors import Error
from nnc_core.base.missing import MissingFileError, NotAFileError

POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="POSIX file modes and links")


def test_writes_a_new_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_atomically(tmp_path / "weights", lambda file: file.write(b"new"))
    assert (tmp_path / "weights").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["weights"]


def test_replaces_an_old_file_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "weights"
    target.write_bytes(b"old")
    with open_atomically(target) as file:
        file.write(b"new content")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new content"


@pytest.mark.parametrize("failure", [ValueError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("old", [b"old", None])
def test_a_failing_writer_leaves_everything_as_it_was(
    tmp_path: Path, failure: type[BaseException], old: bytes | None
) -> None:
    target = tmp_path / "weights"
    if old is not None:
        target.write_bytes(old)
    before = os.listdir(tmp_path)
    with pytest.raises(failure), open_atomically(target) as file:
        file.write(b"half")
        raise failure("stopped")
    assert os.listdir(tmp_path) == before
    assert old is None or target.read_bytes() == old


def test_a_failing_rename_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: object, target: object) -> None:
        raise PermissionError("refused")

    (tmp_path / "weights").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        write_atomically(tmp_path / "weights", lambda file: file.write(b"new"))
    assert os.listdir(tmp_path) == ["weights"]
    assert (tmp_path / "weights").read_bytes() == b"old"


def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "weights"
    target.write_bytes(b"old")
    program = (
        "import os, sys\n"
        "from nnc_core.base.atomic import open_atomically\n"
        "with open_atomically(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os._exit(9)\n"
    )
    result = subprocess.run([sys.executable, "-c", program, str(target)], check=False)
    assert result.returncode == 9
    assert target.read_bytes() == b"old"


def test_content_is_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (happened.append("sync"), sync(descriptor))[1])
    monkeypatch.setattr(os, "replace", lambda old, new: (happened.append("rename"), replace(old, new))[1])
    write_atomically(tmp_path / "weights", lambda file: file.write(b"new"))
    assert happened[:2] == ["sync", "rename"]


@POSIX_ONLY
def test_keeps_the_mode_of_a_replaced_file_and_follows_links(tmp_path: Path) -> None:
    target, link = tmp_path / "weights", tmp_path / "latest"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomically(link, lambda file: file.write(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@POSIX_ONLY
def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "weights", lambda file: file.write(b"new"))
    assert (tmp_path / "weights").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_missing_directory_and_directory_as_target_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="absent") as missing:
        write_atomically(tmp_path / "absent" / "weights", lambda file: file.write(b"new"))
    assert isinstance(missing.value, Error) and isinstance(missing.value, FileNotFoundError)
    with pytest.raises(NotAFileError, match="is a directory") as directory:
        write_atomically(tmp_path, lambda file: file.write(b"new"))
    assert isinstance(directory.value, IsADirectoryError)
    assert os.listdir(tmp_path) == []
