"""The base of all minimisers: parameters by name and in groups, state in cells, a live step count and learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypedDict

import numpy as np

from nnc_core.algodiff.gradients import value_and_grad
from nnc_core.base.dtype import float64, is_complex
from nnc_core.base.errors import (
    DeviceError,
    DTypeError,
    NotSupportedError,
    OperandError,
    ShapeError,
    StateError,
    UnknownAttributeError,
)
from nnc_core.base.unknown_names import unknown_member
from nnc_core.functions.creation import asarray, zeros
from nnc_core.optim.clipping import Clipping
from nnc_core.optim.minimisers.compiled_updates import ran_compiled
from nnc_core.optim.minimisers.configuration import setting_text
from nnc_core.optim.minimisers.groups import Cells, Group, grouped
from nnc_core.optim.minimisers.nonfinite import POLICIES, guard_update
from nnc_core.optim.minimisers.parameter_update import GroupUpdate, ParameterUpdate
from nnc_core.optim.minimisers.stateful import Stateful
from nnc_core.optim.settings import FINITE, FUNCTION_OR_NONE, NON_NEGATIVE, RATE, Settings, check, one_of
from nnc_core.optim.spellings import OF_MINIMISERS, SETTING_ADVICE, respelled_settings
from nnc_core.symbol import show_line, user_line
from nnc_core.type import plain
from nnc_core.values.cell import Cell, guarded
from nnc_core.values.modes import current_trace, no_grad
from nnc_core.values.tensor import Tensor

Schedule = Callable[[Tensor], Any]
"""From the number of updates made before (no dimensions; float64 beside float64 parameters, else float32) to the
learning rate."""
Parameters = Cells | Iterable[Group]
Option = Callable[[str], Any]
"""The settings of a group by name."""
Updates = list[tuple[Cell, Tensor]]
Loss = Callable[[dict[str, Tensor]], Tensor]
"""From weights by the names of the parameters to a floating-point scalar."""
_OF_ALL = ("scale", "clipping", "nonfinite", "decays")


class Common(TypedDict, total=False):
    """Settings that every minimiser takes by keyword."""

    scale: float
    """Gradients are multiplied by it first, as a loss that was scaled up needs (NNC's scale)."""
    clipping: Clipping | None
    """A function of the scaled gradients, such as clipping.GlobalNorm(1.0)."""
    nonfinite: str
    """The rule for gradients with NaN or infinity: "propagate", "skip" or "error"."""
    decays: Callable[[str, Cell], bool] | None
    """A test, by name and cell, of the parameters that `weight_decay` applies to; None is all."""


class Count(Cell):
    """The number of updates that were made."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse what PyTorch's optimisers do by `step()`."""
        raise OperandError("the step of a minimiser is a number, the count of its updates", line=show_line(user_line()),
                           hint="minimiser.update(gradients), after backward(): minimiser.update(module.gradients())")


class Minimiser(Stateful):
    """Changes parameters so that a loss falls: `update` takes gradients by the names of the parameters.

    `parameters` is a mapping such as `module.named_parameters()`, taken as it is now, or `module.parameters()`, which
    has the same names; another sequence of cells, named by position; or a sequence of `Group`s, each with settings of
    its own.  The learning rate is a number or a `Schedule`, evaluated in the graph; compiled code is traced again when
    a setting is changed.  State has the dtype and the device of its parameter.  By keyword come the settings of
    `Common`.

    A subclass names its settings, its slots (`slots_for`) and says in `rule` what becomes of one parameter; or it
    gives all `changes` itself.
    """

    settings: ClassVar[Settings] = {"learning_rate": RATE, "weight_decay": NON_NEGATIVE, "decays": FUNCTION_OR_NONE,
                                    "scale": FINITE, "clipping": FUNCTION_OR_NONE, "nonfinite": one_of(*POLICIES)}
    decoupled: ClassVar[bool] = False
    """True if the rule itself applies weight decay, which is otherwise added to the gradient."""
    takes_complex: ClassVar[bool] = False

    weight_decay: float = 0.0
    decays: Callable[[str, Cell], bool] | None = None
    scale: float = 1.0
    clipping: Clipping | None = None
    nonfinite: str = "propagate"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _spelled_as_here(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule, **settings: Any) -> None:
        self.groups = grouped(parameters)
        self.parameters = {name: p for group in self.groups for name, p in group.parameters.items()}
        self.learning_rate = learning_rate
        for name, value in settings.items():
            if name not in self.settings:
                raise UnknownAttributeError(f"{name!r} is no setting", operator=type(self).__name__,
                                            hint=SETTING_ADVICE.get(name) or f"settings are {', '.join(self.settings)}")
            setattr(self, name, value)
        if not self.takes_complex and any(is_complex(p.spec.dtype) for p in self.parameters.values()):
            raise DTypeError("complex parameters, whose squares are no lengths", operator=type(self).__name__,
                             hint="optim.SGD takes them; or train real and imaginary parts")
        for group in self.groups:
            group.adopt(type(self))
        first = next(iter(self.parameters.values()))
        self.step = Count(asarray(np.int64(0), device=first.device), "step")
        self.slots: dict[str, dict[str, Cell]] = {}
        for group in self.groups:
            self._make_slots(group)

    @classmethod
    def group_settings(cls) -> Settings:
        """The settings that groups may have of their own."""
        return {name: rule for name, rule in cls.settings.items() if name not in _OF_ALL}

    # ---- for subclasses
    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        """The names of the state that a parameter needs under the settings of its group."""
        return ()

    def shared_for(self, option: Option) -> Mapping[str, float]:
        """State that a group has once, numbers by "slot.name", with their first values."""
        return {}

    def zeros_for(self, slot: str, p: Cell, option: Option) -> Tensor:
        """The first value of a slot."""
        return zeros_of(p)

    def advance(self, now: GroupUpdate) -> None:
        """Put the next values of what a group shares into now.shared."""

    def rule(self, update: ParameterUpdate) -> Tensor:
        """The new value of one parameter; its new state goes into the items of `update`."""
        raise NotSupportedError(f"{type(self).__name__} has no rule", hint="define rule(self, update)")

    def changes(self, gradients: Mapping[str, Tensor]) -> Updates:
        """The cells that one update writes and what it writes there."""
        return [change for i, group in enumerate(self.groups) for change in self._changes_of(i, group, gradients)]

    def changes_by(self, gradients: Mapping[str, Tensor], loss: Loss | None) -> Updates:
        """`changes`, by a minimiser that asks the function itself."""
        return self.changes(gradients)

    # ---- one update
    def _changes_of(self, number: int, group: Group, gradients: Mapping[str, Tensor]) -> Updates:
        cells = {name: self._shared_cell(name, number) for name in self.shared_for(self._option(group))}
        now = GroupUpdate(self, group, {name: cell.read() for name, cell in cells.items()})
        self.advance(now)
        updates = [(cell, now.shared[name]) for name, cell in cells.items()]
        for name, cell in group.parameters.items():
            if name not in gradients:  # it is frozen
                continue
            state = {slot: self._cell(slot, name) for slot in self.slots_for(self._option(group), cell)}
            held = {slot: c.read() for slot, c in state.items()}
            update = ParameterUpdate(now, name, cell.read(), gradients[name], held)
            update.decay = update.weight_decay if self.decays is None or self.decays(name, cell) else 0.0
            if update.decay and not self.decoupled:
                update.g = update.g + update.p * update.decay
            new = self.rule(update)
            updates += [(c, update[slot]) for slot, c in state.items()]
            updates.append((cell, new))
        return updates

    def _option(self, group: Group) -> Option:
        return lambda name: group.options[name] if name in group.options else getattr(self, name)

    def _cell(self, slot: str, name: str) -> Cell:
        found = self.slots.get(slot, {}).get(name)
        if found is None:
            raise StateError(f"this {type(self).__name__} was made without {slot!r}, which its settings ask for now",
                             hint="make a new one with these settings")
        return found

    def _make_slots(self, group: Group) -> None:
        option = self._option(group)
        for name, p in group.parameters.items():
            for slot in self.slots_for(option, p):
                self.slots.setdefault(slot, {})[name] = Cell(self.zeros_for(slot, p, option), f"{slot}.{name}")
        number, device = self.groups.index(group), self.step.device
        for path, first in self.shared_for(option).items():
            slot, name = path.split(".")
            key = f"{name}.{number}" if number else name
            self.slots.setdefault(slot, {})[key] = Cell(
                asarray(np.asarray(first, self.wide), device=device), f"{slot}.{key}")

    def _shared_cell(self, path: str, number: int) -> Cell:
        slot, name = path.split(".")
        return self._cell(slot, f"{name}.{number}" if number else name)

    @property
    def wide(self) -> Any:
        """The dtype of numbers that belong to no parameter."""
        return np.float64 if any(p.spec.dtype == float64 for p in self.parameters.values()) else np.float32

    def live_step(self) -> Tensor:
        """The number of updates made before, as schedules get it."""
        return self.step.read().astype(self.wide)

    # ---- for users
    def update(self, gradients: Mapping[str, Tensor], loss: Loss | None = None) -> None:
        """One update.  All new values are computed before the first is written.

        `loss` is the function that the gradients are of, for minimisers that evaluate it elsewhere (`needs_loss`).

        Raises StateError for names that are not those of the parameters, ShapeError and DTypeError for gradients that
        are not like their parameters; ExecutionError under `nonfinite="error"`.
        """
        self._check(gradients)
        if current_trace.get() is not None:
            guarded(self._read_settings)
        gradients = {name: gradients[name] for name in self.active()}
        if not gradients:
            return
        try:
            with no_grad():
                if self.nonfinite == "propagate":
                    if loss is not None or not ran_compiled(self, self._read_settings(), gradients):
                        self._update(gradients, loss)
                else:
                    guard_update(self.nonfinite, type(self).__name__, gradients, self.step.read(),
                                 lambda given: self._update(given, loss))
        except DeviceError:
            self._check_device()
            raise

    def _check_device(self) -> None:
        """Say so if the parameters have gone to a device that the state is not on."""
        state = self.cells()
        for name, p in self.active().items():
            kept = next((key for key, cell in state.items() if cell.device.id != p.device.id), None)
            if kept is not None:
                raise DeviceError(f"parameter {name!r} is on {p.device.id}, {kept!r} of {type(self).__name__} on "
                                  f"{state[kept].device.id}", line=show_line(user_line()),
                                  hint=f"minimiser.to({p.device.id!r}), after module.to") from None

    def _update(self, gradients: Mapping[str, Tensor], loss: Loss | None) -> None:
        changes, count = self.changes_by(self.prepared(gradients), loss), self.step.read() + 1
        for cell, tensor in [*changes, (self.step, count)]:
            cell.write(tensor)

    def prepared(self, gradients: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Gradients scaled and clipped."""
        if self.scale != 1:
            gradients = {name: g * self.scale for name, g in gradients.items()}
        return gradients if self.clipping is None else self.clipping(gradients)

    def descend(self, loss: Loss) -> Tensor:
        """One update by a function of the weights; its value before."""
        value, gradients = value_and_grad(loss)({name: p.read() for name, p in self.parameters.items()})
        self.update(gradients, loss)
        return value  # type: ignore[no-any-return]

    def active(self) -> dict[str, Cell]:
        """The parameters that are updated: all but those that are frozen (`nn.Module.freeze`)."""
        return {name: p for name, p in self.parameters.items() if not getattr(p, "frozen", False)}

    def _check(self, gradients: Mapping[str, Tensor]) -> None:
        active = self.active()
        missing, unknown = active.keys() - gradients.keys(), gradients.keys() - self.parameters.keys()
        if missing or unknown:
            said = [f"missing {', '.join(sorted(missing))}"] * bool(missing)
            said += [f"unknown {', '.join(sorted(unknown))}"] * bool(unknown)
            numbered = bool(missing) and all(name.isdecimal() for name in missing)
            raise StateError(f"gradients for {type(self).__name__}: {'; '.join(said)}",
                             hint="make it with module.named_parameters(), or optim.groups_by_name, for these names"
                             if numbered else "differentiate by the parameters that the minimiser was made with: "
                             "nn.value_and_grad(module, loss, parameters=minimiser.parameters)")
        for name, p in active.items():
            g, spec = gradients[name], p.spec
            if g.shape != spec.shape:
                raise ShapeError(f"the gradient of {name!r} is {g.spec}, its parameter {p.spec}",
                                 hint="gradients have the shapes of their parameters: sum over other axes first")
            if g.dtype != spec.dtype:
                raise DTypeError(f"the gradient of {name!r} is {g.spec}, its parameter {p.spec}",
                                 hint="cast with astype")

    def _read_settings(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.settings] + list(self.active())
                     + [(name, value) for group in self.groups for name, value in group.options.items()])

    # ---- state
    def cells(self) -> dict[str, Cell]:
        """The state by name: "step", "slot.parameter", and what a schedule carries as "schedule.name"."""
        found: dict[str, Cell] = {"step": self.step}
        for slot, cells in self.slots.items():
            found |= {f"{slot}.{name}": cell for name, cell in cells.items()}
        rates: list[Any] = [self.learning_rate, *[g.options.get("learning_rate") for g in self.groups]]
        for number, rate in enumerate(rates):
            carried = rate.cells() if hasattr(rate, "cells") else {}
            prefix = f"schedule.{number - 1}" if number else "schedule"
            found |= {f"{prefix}.{name}": cell for name, cell in carried.items() if cell not in found.values()}
        return found

    def numbers(self) -> dict[str, float]:
        """Settings that are numbers, those of groups as "number of the group.name": what checkpoints hold of them."""
        found = {name: getattr(self, name) for name in self.settings}
        found |= {f"{i}.{name}": x for i, group in enumerate(self.groups) for name, x in group.options.items()}
        return {name: x for name, x in found.items() if isinstance(x, (int, float))}

    def take_numbers(self, saved: Mapping[str, float]) -> None:
        """Take over such settings, where this minimiser has them as numbers too."""
        for name in saved.keys() & self.numbers().keys():
            number, _, option = name.rpartition(".")
            if number:
                self.groups[int(number)][option] = saved[name]
            else:
                setattr(self, name, saved[name])

    def configuration(self) -> dict[str, str]:
        """The class and the settings as text, those of groups as "number of the group.name", with the parameters of
        each where there are several: what a run that goes on must have alike."""
        found = {"class": type(self).__name__} | {name: setting_text(getattr(self, name)) for name in self.settings}
        for i, group in enumerate(self.groups):
            found |= {f"{i}.{name}": setting_text(x) for name, x in group.options.items()}
            if len(self.groups) > 1:
                found[f"{i}.parameters"] = ", ".join(group.parameters)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.settings:
            value = plain(value)
            check(type(self).__name__, name, value, self.settings[name])
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            """An error for what is not there, with what to write instead of a name of PyTorch's."""
            raise unknown_member(self, name, OF_MINIMISERS)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.settings
                         if name == "learning_rate" or getattr(self, name) != getattr(type(self), name, None))
        return f"{type(self).__name__}({len(self.parameters)} parameters, {said})"


def _spelled_as_here(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that takes settings by PyTorch's names too: `lr`, `betas`, `eps`."""

    @wraps(init)
    def made(self: Minimiser, *args: Any, **kwargs: Any) -> None:
        outermost = type(self).__init__ is made
        init(self, *args, **(respelled_settings(self.settings, kwargs) if outermost else kwargs))

    return made


def zeros_of(p: Cell) -> Tensor:
    """Zeros like a parameter, on its device."""
    return zeros(p.spec.shape, dtype=p.spec.dtype, device=p.device)
