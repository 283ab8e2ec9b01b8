"""Finds plugins, calls their hooks, and keeps every failure inside the plugin that caused it.

pluggy's own loader stops at the first plugin that raises; here each plugin is imported and called by itself, and what
went wrong becomes the state of its record.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from nnc_plugins.child import Extent
from nnc_plugins.discovery import Candidate, find_plugins
from nnc_plugins.hooks import Hooks, IncompatiblePlugin, dotted
from nnc_plugins.hookspecs import API, DeviceOffer
from nnc_plugins.marks import Marks
from nnc_plugins.offers import Opener, checked, words_for
from nnc_plugins.records import PluginRecord, PluginWarning, State, one_line
from nnc_plugins.trials import Trials

if TYPE_CHECKING:
    from nnc_core.device import Device

T = TypeVar("T")
REGISTERED = "registered by the program"
CRASHED = ("crashed last time: a process ended while it was {step}; `nnc devices` tries it by itself, and lets it in "
           "again if it works")
ENDED = ("left out: tried in a process of its own, {how} while {step}; `nnc devices` tries it again, and lets it in if "
         "it works")
SETUP_HOOKS = frozenset({"nnc_plugin_info", "nnc_devices", "nnc_register"})
"""A plugin that raises in one of these is used no further; in another hook it loses only that call."""


class DeviceTable(Protocol):
    """The table that `Manager.fill` fills: core's `Registry` of devices."""

    def add(self, id: str, open: Callable[[], Device], testing: bool, texts: Sequence[str]) -> object: ...


class Manager:
    """The plugins of this process.

    `options` (core's settings) are handed to the hooks, read-only.  `block` and the environment variable
    NNC_PLUGINS_BLOCK (comma separated) name installed plugins to leave alone; `only` restricts discovery to
    the names given.  `marks`: where plugins are noted while they are imported and set up, so that one which ends or
    hangs this process is left alone by the next.  `trials`: where new ones are tried before, so that they do not.
    """

    def __init__(self, options: Mapping[str, Any] | None = None, *, block: Iterable[str] = (),
                 only: Iterable[str] | None = None, marks: Marks | None = None,
                 trials: Trials | None = None) -> None:
        self.options: Mapping[str, Any] = MappingProxyType(dict(options or {}))
        self._block, self._marks, self._trials = tuple(block), marks, trials
        self._only = None if only is None else frozenset(only)
        self._hooks = Hooks()
        self._records: list[PluginRecord] = []
        self._candidates: dict[str, Candidate] = {}
        self._holders: dict[str, PluginRecord] = {}
        self._filled: list[tuple[DeviceTable, set[str]]] = []
        self._collected: set[tuple[str, str]] = set()
        self._complaints: list[str] = []
        self._discovered = self._listing = False
        self._lock = RLock()

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """One record for each plugin, in the order in which they are asked."""
        return tuple(self._records)

    def discover(self) -> Self:
        """Import every installed plugin that is meant for this API; what fails is in the records.  A
        second call does nothing."""
        with self._lock:
            if not self._discovered:
                self._discovered = True
                for candidate in find_plugins(self._block):
                    if self._only is None or candidate.name in self._only:
                        self._take(candidate)
        return self

    def register(self, plugin: object, name: str) -> PluginRecord:
        """Take in a plugin that no distribution announces; `block` does not concern it."""
        with self._lock:
            record = PluginRecord(name, REGISTERED)
            self._records.append(record)
            self._load(record, lambda: plugin)
        return record

    def offers(self, kind: str | None = None) -> dict[str, DeviceOffer]:
        """The devices by id of all plugins, or of those asked so far and of those that name a kind, or are named like
        it.  Warns, once for each, of plugins that cannot be used."""
        with self._lock:
            if not self._listing:  # a plugin that asks while it lists its own gets what is known so far
                self._listing = True
                try:
                    self._list_new(kind)
                finally:
                    self._listing = False
                self._speak()
            return {offer.id: offer for record in self._records if record.usable for offer in record.offers}

    def fill(self, registry: DeviceTable, kind: str | None = None) -> None:
        """Add every device to `registry`, or what there is of a kind; filling it again adds what has come since."""
        with self._lock:
            offers = self.offers(kind)
            given = self._given_to(registry)
            for id in [id for id in offers if id not in given]:
                offer = offers[id]
                registry.add(id, Opener(offer, self._holders[id]), offer.testing, words_for(offer))
                given.add(id)

    def listing(self, id: str) -> AbstractContextManager[None]:
        """Mark the plugin of a device while that is opened because it is there, not because anybody wants it."""
        record = self._holders.get(id)
        return nullcontext() if record is None else self._trying(record, f"opening {id}")

    def collect(self, hook: str, argument: str, make: Callable[[PluginRecord], T]) -> list[tuple[PluginRecord, T]]:
        """Hand a hook of each usable plugin a collector of its own, once; the collectors of those that return."""
        with self._lock:
            found = []
            for record in [r for r in self._records if r.usable and (r.name, hook) not in self._collected]:
                self._collected.add((record.name, hook))
                collector = make(record)
                if self._hooks.implements(record.name, hook):
                    with self._trying(record, f"running {hook}"):
                        answer = self.ask(record, hook, **{argument: collector})
                    found += [(record, collector)] if answer is not None else []
            self._speak()
        return found

    def ask_each(self, hook: str, **arguments: Any) -> list[tuple[PluginRecord, Any]]:
        """The results of a hook, of the usable plugins that have it and do not raise."""
        with self._lock:
            answers = [(record, self.ask(record, hook, **arguments)) for record in self._records if record.usable]
            self._speak()
        return [(record, answer[0]) for record, answer in answers if answer is not None]

    def ask(self, record: PluginRecord, hook: str, **arguments: Any) -> tuple[Any] | None:
        """The result of one plugin's hook, in a tuple; None if it has no such hook or it raised, which is
        recorded.

        Asks whatever the record's state, so that a plugin that failed can still be diagnosed.
        """
        try:
            return self._hooks.call(record.name, hook, arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # not only Exception: plugins exit, and some bindings panic with less
            self._blame(record, hook, error)
            return None

    def _take(self, candidate: Candidate) -> None:
        record = PluginRecord(candidate.name, candidate.source, candidate.state, candidate.detail)
        self._records.append(record)
        if candidate.entry_point is not None:
            step = None if self._marks is None else self._marks.left(record.name, record.source)
            if step is not None:
                return self._fail(record, "blocked", CRASHED.format(step=step))
            self._candidates[record.name] = candidate
            if self._comes_through(record, "import"):
                with self._trying(record, "being imported"):
                    self._load(record, candidate.entry_point.load)
        elif not candidate.unwanted:
            self._complain(record)

    def _comes_through(self, record: PluginRecord, extent: Extent) -> bool:
        """True unless an installed plugin ends or hangs a process of its own, which tries it where it is new."""
        candidate = self._candidates.get(record.name)
        ending = None if self._trials is None or candidate is None else self._trials.ending(candidate, extent)
        if ending is not None:
            self._fail(record, "blocked", ENDED.format(**ending._asdict()))
        return ending is None

    def _trying(self, record: PluginRecord, step: str) -> AbstractContextManager[None]:
        """Mark an installed plugin while it does something for the first time."""
        if self._marks is None or record.source == REGISTERED:
            return nullcontext()
        return self._marks.trying(record.name, record.source, step)

    def _load(self, record: PluginRecord, load: Callable[[], object]) -> None:
        if record.name in self._hooks:
            holder = next(r for r in self._records if r.name == record.name)
            detail = f"the name {record.name!r} is taken by {holder.source}, which came first"
            return self._fail(record, "blocked", detail)
        try:
            plugin = load()
            record.place = _place_of(plugin)
            self._hooks.register(plugin, record.name)
            for remark in self._hooks.never_called(record.name):
                self._note(record, remark)
            record.state = "loaded"
        except KeyboardInterrupt:
            raise
        except IncompatiblePlugin as error:
            self._reject(record, "incompatible", str(error), error)
        except BaseException as error:
            self._reject(record, "import failed", one_line(error), error)
        else:
            self._read_info(record)

    def _read_info(self, record: PluginRecord) -> None:
        answer = self.ask(record, "nnc_plugin_info")
        if answer is None:
            return
        try:
            record.info = MappingProxyType(dict(answer[0]))
            major, minor = record.info["api"]
            fits = major == API[0] and minor <= API[1]
        except Exception as error:  # whatever was returned instead of a mapping
            return self._blame(record, "nnc_plugin_info", error)
        if not fits:
            detail = f"needs plugin API {major}.{minor}, this nnc-core offers {dotted(API)}"
            self._reject(record, "incompatible", f"{detail}; install versions that fit each other")

    def _list_new(self, kind: str | None) -> None:
        """Ask the plugins that are loaded, and may have devices of a kind, which they have."""
        for record in self._records:
            if record.state == "loaded" and record.is_asked_for(kind) and self._comes_through(record, "listing"):
                with self._trying(record, "listing its devices"):
                    self._list_devices(record)

    def _list_devices(self, record: PluginRecord) -> None:
        if not self._hooks.implements(record.name, "nnc_devices"):
            record.state, record.detail = "ok", "adds no devices"
            return
        answer = self.ask(record, "nnc_devices", options=self.options)
        if answer is None:
            return
        try:
            offers = [checked(offer) for offer in answer[0]]
        except Exception as error:
            return self._blame(record, "nnc_devices", error)
        for offer in offers:
            self._claim(record, offer)
        record.state = "ok" if offers else "no device"
        record.detail = ", ".join(offer.id for offer in record.offers)

    def _claim(self, record: PluginRecord, offer: DeviceOffer) -> None:
        if not record.may_offer(offer.id.partition(":")[0]):
            self._note(record, f"device {offer.id!r} is of no kind that the plugin names in its info, ignored")
            return
        holder = self._holders.setdefault(offer.id, record)
        if holder is not record:
            self._note(record, f"device {offer.id!r} is already offered by plugin {holder.name!r}, ignored")
        elif any(known.id == offer.id for known in record.offers):
            self._note(record, f"device {offer.id!r} is offered twice, the second is ignored")
        else:
            record.offers.append(offer)

    def _given_to(self, registry: DeviceTable) -> set[str]:
        for known, given in self._filled:
            if known is registry:
                return given
        self._filled.append((registry, set()))
        return self._filled[-1][1]

    def _blame(self, record: PluginRecord, hook: str, error: BaseException) -> None:
        if hook in SETUP_HOOKS:
            self._fail(record, "probe failed", f"{hook}: {one_line(error)}", error)
        else:
            record.error = error
            self._note(record, f"{hook}: {one_line(error)}")

    def _reject(self, record: PluginRecord, state: State, detail: str,
                error: BaseException | None = None) -> None:
        """Fail, and forget the plugin's hooks."""
        self._hooks.forget(record.name)
        self._fail(record, state, detail, error)

    def _fail(self, record: PluginRecord, state: State, detail: str,
              error: BaseException | None = None) -> None:
        record.state, record.detail, record.error = state, detail, error
        self._complain(record)

    def _note(self, record: PluginRecord, note: str) -> None:
        record.notes.append(note)
        self._complaints.append(f"plugin {record.name} ({record.source}): {note}")

    def _complain(self, record: PluginRecord) -> None:
        self._complaints.append(f"plugin {record}; see `nnc devices`")

    def _speak(self) -> None:
        """Warn of what has not been said yet; where warnings are errors the first is raised, the rest
        wait."""
        while self._complaints:
            warnings.warn(self._complaints.pop(0), PluginWarning, stacklevel=3)


def _place_of(plugin: object) -> str:
    """The place of a module's code: its folder if it is a package, or its file."""
    if not isinstance(plugin, ModuleType) or plugin.__name__ == "__main__":
        return ""
    folders = list(getattr(plugin, "__path__", ()))
    return os.path.join(folders[0], "") if folders else getattr(plugin, "__file__", None) or ""
