"""Groups of parameters that have settings of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeAlias

from nnc_core.base.errors import AttributeValueError, OperandError
from nnc_core.optim.settings import Settings, check
from nnc_core.optim.spellings import respelled_settings
from nnc_core.symbol import show_line, user_line
from nnc_core.type import plain
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell

Cells: TypeAlias = Mapping[str, Cell] | Iterable[Cell]


class Owner(Protocol):
    """The minimiser of a group, as far as the group asks it."""

    @classmethod
    def group_settings(cls) -> Settings: ...


class Group:
    """Parameters, and the settings in which they differ from the minimiser's: `Group(cells, learning_rate=0.1)`.

    A setting is read as group["learning_rate"] and changed likewise; compiled code is then traced again.
    """

    def __init__(self, parameters: Cells, **options: Any) -> None:
        self.parameters = named(parameters)
        self.options = options
        self._owner: type[Owner] | None = None

    def adopt(self, owner: type[Owner]) -> None:
        """Check the options against the settings of a kind of minimiser, now and whenever one is changed."""
        self._owner = owner
        self.options = respelled_settings(owner.group_settings(), self.options)
        for name, value in self.options.items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def __setitem__(self, name: str, value: Any) -> None:
        value = plain(value)
        if self._owner is not None:
            settings, owner = self._owner.group_settings(), self._owner.__name__
            if name not in settings:
                raise AttributeValueError(f"a group has the option {name!r}, which is no setting of groups",
                                          operator=owner, hint=f"settings are {', '.join(settings)}")
            check(owner, name, value, settings[name])
        self.options[name] = value

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"Group({len(self.parameters)} parameters{said})"


def named(parameters: Cells, first: int = 0) -> dict[str, Cell]:
    """Parameters by name: those of a mapping, or the positions in a sequence, from `first` on."""
    if isinstance(parameters, Mapping):
        found = dict(parameters)
    else:
        _check_iterable(parameters)
        found = {str(i): p for i, p in enumerate(parameters, first)}
    for name, p in found.items():
        if not isinstance(p, Cell):
            raise OperandError(f"parameter {name!r} is {type(p).__name__}, which cannot be written",
                               hint="optim.Group(cells, learning_rate=0.1), or optim.groups_by_name"
                               if isinstance(p, dict) else "pass module.named_parameters(), Cells, or Groups of such")
    return found


def with_names(parameters: Any) -> Any:
    """The parameters of a module by its names, where it was asked for a list of them."""
    by_name = getattr(parameters, "by_name", None)
    return parameters if by_name is None or list(by_name.values()) != parameters else by_name


def grouped(parameters: Cells | Iterable[Group]) -> tuple[Group, ...]:
    """The parameters of a minimiser as groups: one for all, or those that are given.

    Positions count on from group to group.  OperandError for no parameters, or for one that is there twice.
    """
    if not isinstance(parameters, Mapping):
        _check_iterable(parameters)
    parameters = with_names(parameters)
    given = parameters if isinstance(parameters, Mapping) else list(parameters)
    if isinstance(given, list) and any(isinstance(x, Group) for x in given):
        groups = tuple(_numbered_on(given))
    else:
        groups = (Group(given),)  # type: ignore[arg-type]
    _check_once(groups)
    return groups


def _check_iterable(parameters: Any) -> None:
    if not isinstance(parameters, Iterable):
        raise OperandError(f"parameters is {type(parameters).__name__}, expected a mapping or a sequence of cells",
                           line=show_line(user_line()), hint="pass module.named_parameters()")


def _numbered_on(given: list[Any]) -> Iterator[Group]:
    count = 0
    for group in given:
        if not isinstance(group, Group):
            raise OperandError(f"a {type(group).__name__} among groups", hint="give Groups only, or parameters only")
        if all(name.isdecimal() for name in group.parameters):
            group.parameters = named(list(group.parameters.values()), count)
        count += len(group.parameters)
        yield group


def _check_once(groups: tuple[Group, ...]) -> None:
    names: set[str] = set()
    cells: set[int] = set()
    for group in groups:
        for name, p in group.parameters.items():
            if name in names or id(p) in cells:
                raise OperandError(f"parameter {name!r} is there twice", hint="each belongs to one group, once")
            names.add(name)
            cells.add(id(p))
    if not names:
        raise OperandError("no parameters to train", hint="module.named_parameters(), which leaves frozen ones out")


@located
def groups_by_name(parameters: Mapping[str, Cell], options: Mapping[str, Mapping[str, Any]]) -> list[Group]:
    """Groups for a minimiser from patterns of names: {"*.bias": {"weight_decay": 0.0}, "head.*": {...}}.

    Each parameter goes to the first pattern that it matches (`*` stands for any text, `?` for a letter, `[ab]` for one
    of them), those that match none to a group without options.  OperandError for a pattern to which none goes.
    """
    found: dict[str, dict[str, Cell]] = {pattern: {} for pattern in options}
    rest: dict[str, Cell] = {}
    for name, p in parameters.items():
        pattern = next((pattern for pattern in options if fnmatchcase(name, pattern)), None)
        (rest if pattern is None else found[pattern])[name] = p
    for pattern, members in found.items():
        if not members:
            raise OperandError(f"no parameter is left for the pattern {pattern!r}",
                               hint=f"parameters are {', '.join(parameters) or 'none'}; the first match counts")
    groups = [Group(members, **options[pattern]) for pattern, members in found.items()]
    return [*groups, Group(rest)] if rest else groups
