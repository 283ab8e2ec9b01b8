"""Additions of plugins besides devices: library code for operators, rewrites, and copies between devices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from nnc_core.base.errors import (
    AttributeValueError,
    FallbackWarning,
    OperandError,
    PluginError,
    ReplacementCycleError,
)
from nnc_core.base.line import users_frame
from nnc_core.device import CommandBackend, Device, DirectCopy, Registry
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.optimiser import REWRITES
from nnc_core.optimiser.rewrite import TAGS, Rewrite, Rule
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_plugins import Manager

Maker = Callable[[Device], CommandBackend]


class BackendRegistry:
    """The collector that `nnc_register` is given: it takes library code for operators of any device."""

    def __init__(self) -> None:
        self.backends: list[tuple[str, str, Maker]] = []

    def add_backend(self, kind: str, operator: str, make: Maker) -> None:
        """Add library code for an operator to every device of a kind, such as "cpu".

        `make(device)` gives a `nnc_core.device.CommandBackend`; it is called once for each device, when that is
        opened.  The backend is asked before those of the device itself; commands that it refuses are theirs.
        """
        _check_operators(operator)
        if not callable(make):
            raise OperandError(f"the backend of {operator!r} for {kind!r} is {type(make).__name__}",
                               hint="give a function of the device that makes the backend")
        self.backends.append((kind, operator, make))


class Pipeline:
    """The collector that `nnc_passes` is given: it takes rewrites."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        self.rewrites: list[Rewrite] = []

    def rewrite(self, name: str, *operators: str, tag: str = "simplify", exact: bool = True,
                once: str = "") -> Callable[[Rule], Rule]:
        """Decorate a rule(F, node) that looks at the nodes of some operators, on every device.

        It gives a node of the same shape and dtype, made with the operators of F, or None where it does not apply.
        One that is not exact to the bit is left out under `config.deterministic`.  `tag` is one of
        `nnc_core.optimiser.rewrite.TAGS`; `once` names an operator if the rule asks whether one of its nodes is read
        once.
        """
        _check_operators(*operators, *[once] * bool(once))
        if tag not in TAGS:
            raise AttributeValueError(f"rewrite {name!r} has the tag {tag!r}", hint=f"one of {', '.join(sorted(TAGS))}")
        full = f"{self.plugin}:{name}"
        if full in REWRITES or any(r.name == full for r in self.rewrites):
            raise AttributeValueError(f"there are two rewrites {full!r}", hint="name one of them otherwise")

        def register(rule: Rule) -> Rule:
            guarded = partial(_guarded, rule, full, self.plugin)
            self.rewrites.append(Rewrite(full, operators, frozenset({tag}), exact, guarded, once))
            return rule

        return register


def extend(manager: Manager, registry: Registry) -> None:
    """Ask the plugins that have not been asked yet for library code and rewrites.  What one gives counts only if its
    hook returns."""
    for record, backends in manager.collect("nnc_register", "registry", lambda record: BackendRegistry()):
        for kind, operator, make in backends.backends:
            registry.add_backend(kind, operator, partial(_made, make, operator, record.name))
    for _, pipeline in manager.collect("nnc_passes", "pipeline", lambda record: Pipeline(record.name)):
        REWRITES.update({r.name: r for r in pipeline.rewrites})


def direct_copy(manager: Manager, source: Device, target: Device) -> DirectCopy | None:
    """The first copy between two devices that a plugin offers; None if there is none."""
    for record, copy in manager.ask_each("nnc_transfer", source=source, target=target):
        if callable(copy):
            return copy  # type: ignore[no-any-return]
        if copy is not None:
            warnings.warn(f"plugin {record.name}: nnc_transfer gave {type(copy).__name__}, expected a function or None",
                          FallbackWarning, stacklevel=users_frame())
    return None


def _check_operators(*names: str) -> None:
    for name in names:
        if name not in OPERATORS:
            raise OperandError(f"there is no operator {name!r}", hint="docs/operators.md lists them")


def _made(make: Maker, operator: str, plugin: str, device: Device) -> CommandBackend | None:
    """A backend; None, and a warning, if it cannot be made: the device does without."""
    try:
        backend = make(device)
        if not isinstance(backend, CommandBackend):
            raise TypeError(f"gave {type(backend).__name__}, expected a CommandBackend")
        return backend
    except Exception as error:
        warnings.warn(f"the backend of plugin {plugin} for {operator} on {device.spec.id} is left out: "
                      f"{type(error).__name__}: {error}", FallbackWarning, stacklevel=users_frame())
        return None


def _guarded(rule: Rule, name: str, plugin: str, F: Nodes, node: Node) -> Node | None:
    """A rule whose mistakes name the plugin that it comes from."""
    hint = f"NNC_PLUGINS_BLOCK={plugin} keeps the plugin out"
    try:
        found = rule(F, node)
    except ReplacementCycleError:
        raise
    except Exception as error:
        raise PluginError(f"rewrite {name} failed: {type(error).__name__}: {error}", operator=node.op.name,
                          hint=hint) from error
    if found is None or (isinstance(found, Node) and found.spec == node.spec):
        return found
    given = found.spec if isinstance(found, Node) else type(found).__name__
    raise PluginError(f"rewrite {name} gives {given} for {node.spec}", operator=node.op.name, hint=hint)
