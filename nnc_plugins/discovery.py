"""Discovery of the plugins that are installed, without importing any of them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint, distributions

from nnc_plugins.hookspecs import API
from nnc_plugins.records import State, one_line

PREFIX = "nnc.plugins.v"
GROUP = f"{PREFIX}{API[0]}"
BLOCK_VARIABLE = "NNC_PLUGINS_BLOCK"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin that some distribution announces.

    `state` is "found" if it may be imported, by its entry point; else "incompatible" (another API major),
    "blocked" (by the user, or its name is taken) or "import failed" (its announcement is damaged), and
    `detail` says why.
    """

    name: str
    source: str
    state: State
    detail: str = ""
    entry_point: EntryPoint | None = None
    unwanted: bool = False
    """Blocked by the user."""


def find_plugins(block: Iterable[str] = ()) -> list[Candidate]:
    """All plugins on sys.path, by name; of two with one name, the one that comes first on sys.path is usable.

    `block` holds names to leave alone; those in the environment variable NNC_PLUGINS_BLOCK, separated by
    commas, are added to it.
    """
    blocked = {*block, *(name.strip() for name in os.environ.get(BLOCK_VARIABLE, "").split(","))}
    # sys.path orders folders, but nothing orders the distributions in a folder: their names do
    announced = sorted(_announced(), key=lambda item: (item[0].name, item[1]))
    usable: dict[str, Candidate] = {}
    return [_settle(candidate, blocked, usable) for candidate, _ in announced]


def _settle(candidate: Candidate, blocked: Collection[str], usable: dict[str, Candidate]) -> Candidate:
    """Withdraw a candidate that the user does not want or whose name is taken."""
    if candidate.name in blocked:
        detail = f"switched off by the `block` argument or {BLOCK_VARIABLE}"
        return replace(candidate, state="blocked", detail=detail, entry_point=None, unwanted=True)
    if candidate.state != "found":
        return candidate
    first = usable.setdefault(candidate.name, candidate)
    if first is candidate:
        return candidate
    detail = f"the name {candidate.name!r} is taken by {first.source}, which comes first; uninstall one"
    return replace(candidate, state="blocked", detail=detail, entry_point=None)


def _announced() -> Iterator[tuple[Candidate, tuple[int, str]]]:
    """The candidates of each distribution, with its place: (rank of its folder on sys.path, its name)."""
    folders: dict[str, int] = {}
    seen: set[str] = set()
    for distribution in distributions():
        rank = folders.setdefault(str(distribution.locate_file("")), len(folders))
        if PREFIX not in _entry_point_text(distribution):
            continue
        name, version = _identity(distribution)
        normal = re.sub(r"[-_.]+", "-", name).lower()
        if name and normal in seen:  # one distribution twice on sys.path: import takes the first as well
            continue
        seen.add(normal)
        name = name or f"nameless distribution in {distribution.locate_file('')}"
        for candidate in _candidates(distribution, name, f"{name} {version}".strip()):
            yield candidate, (rank, normal)


def _entry_point_text(distribution: Distribution) -> str:
    try:
        return distribution.read_text("entry_points.txt") or ""
    except (OSError, ValueError):  # unreadable or no text: nothing says that it is a plugin of ours
        return ""


def _identity(distribution: Distribution) -> tuple[str, str]:
    """Name and version, empty where the METADATA is lost."""
    try:
        metadata = distribution.metadata
        known = {key: metadata[key] for key in ("Name", "Version") if key in metadata}
    except Exception:  # which one depends on the version of Python
        known = {}
    return known.get("Name", ""), known.get("Version", "")


def _candidates(distribution: Distribution, name: str, source: str) -> list[Candidate]:
    """One candidate for each plugin name; an entry for our API major hides those for other majors."""
    try:
        entries = [e for e in distribution.entry_points if re.fullmatch(re.escape(PREFIX) + r"\d+", e.group)]
    except Exception as error:  # the parser lets any error of its own through
        return [Candidate(name, source, "import failed", f"damaged entry_points.txt: {one_line(error)}")]
    ours = {e.name: Candidate(e.name, source, "found", entry_point=e) for e in entries if e.group == GROUP}
    others: dict[str, list[int]] = {}
    for entry in entries:
        if entry.name not in ours:
            others.setdefault(entry.name, []).append(int(entry.group.removeprefix(PREFIX)))
    return [*ours.values(), *(_incompatible(name, source, majors) for name, majors in others.items())]


def _incompatible(name: str, source: str, majors: list[int]) -> Candidate:
    versions = ", ".join(f"v{major}" for major in sorted(majors))
    advice = "upgrade nnc-core or install an older" if max(majors) > API[0] else "install a newer"
    detail = f"made for plugin API {versions}, this nnc-core offers v{API[0]}; {advice} version of the plugin"
    return Candidate(name, source, "incompatible", detail)
