"""The stack spelled out, once: Engine(Graph(Optimiser(Operator(Symbol(Shape(Type(device)))))))."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from nnc_core.base.cache_folder import PLUGIN_MARKS, PLUGIN_TRIALS, cache_folder
from nnc_core.base.config import config
from nnc_core.base.disk_cache import disk_cache
from nnc_core.base.errors import DeviceError, Error, FallbackWarning, PluginError
from nnc_core.base.line import count_as_inside, users_frame
from nnc_core.device import Array, Device, DeviceSpec, DirectCopy, Registry
from nnc_core.engine import Engine, transfer
from nnc_core.extensions import direct_copy, extend
from nnc_core.graph import Graph
from nnc_core.operator import Operator
from nnc_core.optimiser import Optimiser
from nnc_core.shape import Shape
from nnc_core.symbol import Number, Symbol, show_line, user_line
from nnc_core.type import Type

if TYPE_CHECKING:
    from nnc_plugins import Manager, PluginRecord


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Stack:
    """The eight layers for one device."""

    device: Device
    type: Type
    shape: Shape
    symbol: Symbol
    operator: Operator
    optimiser: Optimiser
    graph: Graph
    engine: Engine
    accepted: dict[tuple[Any, ...], Callable[..., Any]] = field(default_factory=dict)
    """Eager kernels by the operators and dtypes that inference has accepted here: the next call goes straight there."""
    prepared: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """Ways in which operators without eager kernels run, by their attributes and operands (`values.prepared`)."""
    repeated: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """Functions by the shapes of operands: how often they were called, or what they call (`values.repetition`)."""
    scalars: dict[Number, Any] = field(default_factory=dict)
    """Numbers beside tensors, as arrays of the device."""
    ways: WeakKeyDictionary[Stack, DirectCopy | None] = field(default_factory=WeakKeyDictionary)
    """The copies that plugins offer from here to other stacks, asked for at the first transfer."""

    @property
    def infers_by_dtype(self) -> bool:
        """True if acceptance of operands follows from their dtypes: the layers that infer are nnc's own."""
        return self.type.__class__ is Type and self.shape.__class__ is Shape

    @property
    def is_plain(self) -> bool:
        """True if all layers are nnc's own."""
        own = (Type, Shape, Symbol, Operator, Optimiser, Graph, Engine)
        layers = (self.type, self.shape, self.symbol, self.operator, self.optimiser, self.graph, self.engine)
        return all(layer.__class__ is kind for layer, kind in zip(layers, own, strict=True))

    def __repr__(self) -> str:
        return f"<stack of {self.device.spec.id}>"

    def and_on(self, other: Stack) -> str:
        """The places of arrays of two stacks, for an error: on two devices, or under one id twice."""
        mine, others = self.device.spec.id, other.device.spec.id
        return f"{mine} and {others}" if mine != others else f"two different stacks of {mine}"


def make_stack(device: Device, *, Type: type[Type] = Type, Shape: type[Shape] = Shape, Symbol: type[Symbol] = Symbol,
               Operator: type[Operator] = Operator, Optimiser: type[Optimiser] = Optimiser,
               Graph: type[Graph] = Graph, Engine: type[Engine] = Engine) -> Stack:
    """Build the layers on a device; any of them may be a subclass."""
    if not isinstance(device, Device):
        raise DeviceError(f"{device!r} is no Device", operator="make_stack", line=show_line(user_line()),
                          hint='nnc.stack_for("cpu:0").device is one')
    type_ = Type(device)
    shape = Shape(type_)
    symbol = Symbol(shape)
    operator = Operator(symbol)
    optimiser = Optimiser(operator)
    graph = Graph(optimiser)
    made = Stack(device, type_, shape, symbol, operator, optimiser, graph, Engine(graph))
    _alive.add(made)
    return made


def opened() -> list[Stack]:
    """The stacks of all devices that have been used."""
    with _lock:
        return list(_stacks.values())


PREFERENCE = ("cpu", "opencl", "cuda", "strict")
"""Kinds of device in the order in which a default is sought."""

registry = Registry()
_stacks: dict[str, Stack] = {}
_names: dict[str, str] = {}
"""The ids of devices that were asked for, by what was asked for."""
_alive: WeakSet[Stack] = WeakSet()
_lock = threading.RLock()
_manager: Manager | None = None
_default_id = ""


def plugin_manager() -> Manager:
    """The plugins, discovered at first use; what they add to devices is in the registry."""
    global _manager
    with _lock:
        if _manager is None:
            from nnc_plugins import Manager, Marks, Trials

            options, marks = config.as_dict(), Marks(cache_folder() / PLUGIN_MARKS) if config.cache_limit else None
            trials = Trials(disk_cache(PLUGIN_TRIALS), options)
            _manager = Manager(options, marks=marks, trials=trials).discover()
            _take_in(_manager)
        return _manager


def _take_in(manager: Manager) -> None:
    """Ask new plugins for what they add: code and rewrites first, so that devices are opened with them."""
    for record in manager.records:
        if record.place:
            count_as_inside(record.place)
    extend(manager, registry)


def _look_for(kind: str | None) -> None:
    """Put the devices of a kind, or all, into the registry: plugins that have none of it leave their drivers alone."""
    plugin_manager().fill(registry, kind)


def register_plugin(plugin: object, name: str) -> PluginRecord:
    """Take in a plugin that no distribution announces; what it adds is there at once.

    `plugin` is a module or an object with functions that `nnc_plugins.hookimpl` marks.  The record says how far it got.
    What is compiled already stays as it is.  PluginError for a name that is no text, or an object without any hook.
    """
    if not isinstance(name, str) or not any(hook.startswith("nnc_") for hook in dir(plugin)):
        raise PluginError(f"{name!r} with {type(plugin).__name__} is no name with a plugin", operator="register_plugin",
                          line=show_line(user_line()),
                          hint="a text, and a module or object with functions nnc_devices, nnc_register, nnc_passes "
                               "or nnc_transfer that nnc_plugins.hookimpl marks")
    manager = plugin_manager()
    with _lock:
        record = manager.register(plugin, name)
        _take_in(manager)
        _look_for(None)
        _names.clear()
        for stack in list(_alive):
            stack.accepted.clear()  # kernels that added code may go before
            stack.prepared.clear()
            stack.repeated.clear()
            stack.ways.clear()
    return record


def stack_for(device: str | Device | DeviceSpec | Stack | None = None) -> Stack:
    """The stack of a device: by id or spec, by kind ("cpu" is "cpu:0"), by a word of its vendor, driver or name
    ("opencl:intel"), or the default one for None."""
    if device is None:
        return default_stack()
    if isinstance(device, Stack):
        return device
    if isinstance(device, Device):
        return _stack_of(device)
    if not isinstance(device, (str, DeviceSpec)):
        raise _names_none(device)
    id = device.id if isinstance(device, DeviceSpec) else device
    if id == "":
        raise DeviceError("an empty text names no device", line=show_line(user_line()),
                          hint='"cpu:0" for example; None is the default one')
    return _stack_with(id)


def default_stack() -> Stack:
    """The stack of the default device; asked for by each array that is made."""
    id = config.default_device or _default_id or default_device_id()
    return _stacks.get(id) or _stack_with(id)


def reopen(device: str | DeviceSpec) -> DeviceSpec:
    """Open a device anew, after a DeviceLostError for example; its spec.

    Arrays, compiled functions and minimisers on it as it was are lost.  What is made from now on is on the new one,
    outside of blocks of `use_device` that name the device.  DeviceError for what names none: the default device is
    opened anew only by its name, since all that is on it is lost.
    """
    if not isinstance(device, (str, DeviceSpec)):
        raise _names_none(device)
    id = stack_for(device).device.spec.id
    with _lock:
        fresh = registry.reopen(id)
        return _stack_of(fresh).device.spec


def _names_none(device: object) -> DeviceError:
    return DeviceError(f"{device!r} names no device", line=show_line(user_line()),
                       hint='"cpu:0" for example; nnc.devices() lists what there is')


def _stack_with(id: str) -> Stack:
    stack = _stacks.get(id) or _stacks.get(_names.get(id, ""))
    if stack is None:
        _look_for(id.partition(":")[0].lower())
        if registry.find(id) is None:  # the error says what there is
            _look_for(None)
        found = _names[id] = registry.find(id) or id
        try:
            stack = _stack_of(registry.get(found))
        except Error as error:
            error.locate(line=show_line(user_line()))
            raise
    return stack


def _stack_of(device: Device) -> Stack:
    """One for each device.  One that was made by hand is found under its id only if no plugin offers that."""
    id = device.spec.id
    known = _stacks.get(id)
    if known is not None and known.device is device:
        return known
    _look_for(id.partition(":")[0].lower())
    with _lock:
        made = next((stack for stack in list(_alive) if stack.device is device and stack.is_plain), None)
        made = made or make_stack(device)
        if id not in registry.ids or registry.has_opened(device):
            _stacks[id] = made
        return made


def moved(array: Array, source: Stack, target: Stack) -> Array:
    """A copy of an array of one stack on another."""
    if target not in source.ways:
        source.ways[target] = direct_copy(plugin_manager(), source.device, target.device)
    return transfer(array, source.engine.executor, target.engine.executor, source.ways[target])


def default_device_id() -> str:
    """The first device of the preferred kinds; without any plugin `strict:0`, with one warning."""
    global _default_id
    if _default_id:
        return _default_id
    for kind, asked in (*((kind, kind) for kind in PREFERENCE[:-1]), *((kind, None) for kind in PREFERENCE)):
        _look_for(asked)  # plugins that name no kinds are asked only if there is none of those that do
        found = [id for id in registry.ids if id.split(":")[0] == kind]
        if found:
            if kind == "strict":
                warnings.warn("no device plugin is installed: computing on strict:0, slowly; "
                              "`pip install nnc-cpu` (or nnc-opencl) for speed", FallbackWarning,
                              stacklevel=users_frame())
            _default_id = found[0]
            return _default_id
    return registry.get("cpu:0").spec.id  # raises, saying what is there


def devices(*, all: bool = False) -> list[DeviceSpec]:
    """The devices of all plugins that can be opened, the default one first; with `all` those for tests too."""
    first = stack_for(None).device.spec.id
    _look_for(None)
    wanted = [id for id in registry.ids if all or id == first or not registry.is_testing(id)]
    found = [spec for id in wanted if (spec := _spec_of(id)) is not None]
    return sorted(found, key=lambda spec: spec.id != first)


def _spec_of(id: str) -> DeviceSpec | None:
    try:
        with nullcontext() if id in _stacks else plugin_manager().listing(id):
            return stack_for(id).device.spec
    except Exception as error:
        warnings.warn(f"device {id} is left out: {error}", FallbackWarning, stacklevel=users_frame())
        return None
