"""Discovery: plugins that are installed, in whatever state their installation is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from nnc_plugins.discovery import BLOCK_VARIABLE, GROUP, PREFIX, Candidate, find_plugins
from tests.plugins.fixtures.distributions import install, run_with

RECORDS = """
import json, warnings
from nnc_plugins import Manager
warnings.simplefilter("ignore")
manager = Manager(only=only).discover()
offers = manager.offers()
print(json.dumps([[[r.name, r.source, r.state, r.remarks] for r in manager.records], list(offers)]))
"""


def discovered(folders: list[Path], names: list[str],
               **environment: str) -> tuple[list[list[str]], list[str]]:
    """(name, source, state, remarks) of each record, and the ids offered, from a child process."""
    output = run_with(folders, f"only = {names!r}" + RECORDS, **environment)
    records, ids = json.loads(output.splitlines()[-1])
    return records, ids



def candidates(monkeypatch: pytest.MonkeyPatch, *folders: Path, block: Iterable[str] = ()) -> list[Candidate]:
    monkeypatch.setattr(sys, "path", list(map(str, folders)))
    return find_plugins(block)


def test_installed_plugins_are_loaded_and_failures_isolated(tmp_path: Path) -> None:
    for name in ("import_error", "hook_error", "good", "none"):
        install(tmp_path, name)
    records, ids = discovered([tmp_path], ["import_error", "hook_error", "good", "none"])
    assert ids == ["good:0", "good:1"]
    assert records == [
        ["good", "nnc-fake-good 1.0", "ok", "good:0, good:1"],
        ["hook_error", "nnc-fake-hook_error 1.0", "probe failed",
         "nnc_devices: OSError: the driver answers with error 999"],
        ["import_error", "nnc-fake-import_error 1.0", "import failed",
         "ModuleNotFoundError: No module named 'a_library_that_is_not_installed'"],
        ["none", "nnc-fake-none 1.0", "no device", ""],
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["variable", "argument"])
def test_blocked_plugins_are_not_imported_and_not_complained_of(tmp_path: Path, way: str) -> None:
    install(tmp_path, "never_imported")
    install(tmp_path, "none")
    mark = tmp_path / "imported"
    block = ["never_imported"] if way == "argument" else []
    variable = "other, never_imported" if way == "variable" else ""
    code = f"""
from nnc_plugins import Manager
manager = Manager(block={block!r}, only=["never_imported", "none"]).discover()
manager.offers()
print([r.state for r in manager.records])
"""
    states = run_with([tmp_path], code, FAKE_IMPORT_MARK=str(mark), **{BLOCK_VARIABLE: variable})
    assert states == "['blocked', 'no device']\n"
    assert not mark.exists()


def test_other_api_majors_are_listed_without_import(tmp_path: Path) -> None:
    install(tmp_path, "never_imported", groups=(f"{PREFIX}2", f"{PREFIX}3"))
    mark = tmp_path / "imported"
    records, _ = discovered([tmp_path], ["never_imported"], FAKE_IMPORT_MARK=str(mark))
    assert records == [["never_imported", "nnc-fake-never_imported 1.0", "incompatible",
                        "made for plugin API v2, v3, this nnc-core offers v1; "
                        "upgrade nnc-core or install an older version of the plugin"]]  # fmt: skip
    assert not mark.exists()


def test_a_plugin_for_several_majors_is_loaded_for_ours(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "good", groups=(f"{PREFIX}0", f"{PREFIX}2", GROUP))
    assert [(c.name, c.state) for c in candidates(monkeypatch, tmp_path)] == [("good", "found")]


def test_groups_that_only_look_like_ours_are_not_ours(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "good", groups=(f"{PREFIX}1beta", f"x{GROUP}"))
    assert candidates(monkeypatch, tmp_path) == []


def test_one_distribution_twice_on_the_path_counts_once(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = install(tmp_path / "a", "good", distribution="nnc_Fake.good", version="2.0")
    second = install(tmp_path / "b", "good", distribution="nnc-fake-good", version="1.0")
    found = candidates(monkeypatch, first, second, first)
    assert [(c.source, c.state) for c in found] == [("nnc_Fake.good 2.0", "found")]


def test_of_two_distributions_with_one_name_the_first_on_the_path_wins(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [install(tmp_path / "z", "good", distribution="zebra"),
               install(tmp_path / "a", "good", distribution="ant")]
    zebra, ant = candidates(monkeypatch, *folders)
    assert (zebra.source, zebra.state) == ("zebra 1.0", "found")
    assert (ant.source, ant.state, ant.entry_point) == ("ant 1.0", "blocked", None)
    assert "taken by zebra 1.0" in ant.detail


def test_the_manager_tells_of_the_distribution_whose_name_is_taken(tmp_path: Path) -> None:
    folders = [install(tmp_path / "z", "none", distribution="zebra"),
               install(tmp_path / "a", "none", distribution="ant")]
    code = """
import warnings
from nnc_plugins import Manager
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    Manager(only=["none"]).discover().offers()
print(*(w.message for w in caught), sep="\\n")
"""
    assert run_with(folders, code) == (
        "plugin none (ant 1.0): blocked, the name 'none' is taken by zebra 1.0, which comes first; "
        "uninstall one; see `nnc devices`\n")


def test_a_damaged_announcement_harms_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "good")
    install(tmp_path, "none")
    entries = tmp_path / "nnc_fake_none-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[nnc.plugins.v1]\nno equals sign\n", encoding="utf-8")
    good, damaged = candidates(monkeypatch, tmp_path)
    assert (good.name, good.state) == ("good", "found")
    assert (damaged.name, damaged.state) == ("nnc-fake-none", "import failed")
    assert damaged.detail.startswith("damaged entry_points.txt: ")


def test_files_that_are_no_text_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "none")
    entries = tmp_path / "nnc_fake_none-1.0.dist-info" / "entry_points.txt"
    entries.write_bytes(b"[nnc.plugins.v1]\n\xff = x\n")
    assert candidates(monkeypatch, tmp_path) == []


def test_an_installation_without_metadata_goes_by_its_folder(tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "good", metadata=False)
    (found,) = candidates(monkeypatch, tmp_path)
    assert (found.name, found.state) == ("good", "found")
    assert str(tmp_path) in found.source


def test_discovery_happens_once(tmp_path: Path) -> None:
    install(tmp_path, "none")
    code = "from nnc_plugins import Manager; print(len(Manager(only=['none']).discover().discover().records))"
    assert run_with([tmp_path], code) == "1\n"
