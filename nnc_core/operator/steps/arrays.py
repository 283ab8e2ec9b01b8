"""Places in arrays of any strides, as source and as the numbers that it takes."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.layout import Layout
from nnc_core.codegen.clike_places import split


class Axes(NamedTuple):
    """Neighbouring axes that one number counts through; `name` is that of their lengths, axis by axis."""

    name: str
    rank: int

    @property
    def lengths(self) -> list[str]:
        return [f"{self.name}_length{n}" for n in range(self.rank)]

    @property
    def places(self) -> list[str]:
        return [f"{self.name}{n}" for n in range(self.rank)]

    def split(self, number: str) -> str:
        """Declarations of the place on each axis of the point with a number."""
        return " ".join(split(self.places, self.lengths, number, "int64")) if self.rank else ""


class ArraySteps(NamedTuple):
    """The strides of an array along several groups of axes."""

    name: str
    axes: tuple[Axes, ...]

    def element(self) -> str:
        """The element at the places of all axes."""
        return " + ".join([f"{self.name}_first", *[f"{place} * {self.name}_{place}" for axes in self.axes
                                                   for place in axes.places]])

    def names(self) -> list[str]:
        """The numbers that say where it lies."""
        return [f"{self.name}_first", *[f"{self.name}_{place}" for axes in self.axes for place in axes.places]]


class Sides(NamedTuple):
    """Axes of the same points in several arrays: lengths, and the elements from one point to the next in each."""

    lengths: tuple[int, ...]
    steps: dict[str, tuple[int, ...]]

    def numbers(self, axes: Axes) -> dict[str, int]:
        found = dict(zip(axes.lengths, self.lengths, strict=True))
        for name, steps in self.steps.items():
            found |= {f"{name}_{place}": step for place, step in zip(axes.places, steps, strict=True)}
        return found


def sides(places: dict[str, tuple[Layout, slice]]) -> Sides:
    """The axes that arrays have in common, as few as there can be, so that most shapes share a program: neighbours that
    lie like one axis in all of them are one.  At least one."""
    parts = {name: [stride // x.dtype.itemsize for stride in x.strides[part]] for name, (x, part) in places.items()}
    x, part = next(iter(places.values()))
    lengths, steps = list[int](), {name: list[int]() for name in parts}
    for n, length in enumerate(x.shape[part]):
        if length == 1:
            continue
        if lengths and all(steps[name][-1] == parts[name][n] * length for name in parts):
            lengths[-1] *= length
            for name in parts:
                steps[name][-1] = parts[name][n]
        else:
            lengths.append(length)
            for name in parts:
                steps[name].append(parts[name][n])
    return Sides(tuple(lengths) or (1,), {name: tuple(own) or (0,) for name, own in steps.items()})


def first_of(name: str, x: Layout) -> dict[str, int]:
    """The element at which an array begins."""
    return {f"{name}_first": x.offset // x.dtype.itemsize}
