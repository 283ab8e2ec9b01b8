"""docs/numpy.md knows every name of NumPy's main namespace, of numpy.linalg and of numpy.fft, and tells the truth."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import nnc_core as nnc
from tests.house.rows import public

PAGE = Path(__file__).parents[2] / "docs" / "numpy.md"
SOME_MACHINES = {"complex192", "complex256", "float96", "float128"}
"""Names that NumPy has where the processor has such numbers."""


def sections() -> dict[str, str]:
    """The text under each heading."""
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return found[2:]


SECTIONS = sections()
PARAGRAPHS = re.split(r"`numpy\.(linalg|fft)`, as `nnc\.\1`:|Modules of the same name", SECTIONS["Same name"])
SAME = {"": quoted(PARAGRAPHS[0]), "linalg": quoted(PARAGRAPHS[2]), "fft": quoted(PARAGRAPHS[4])}
OTHER = [(quoted(names), quoted(ours), note) for names, ours, note in rows(SECTIONS["Another name"])]
ABSENT = [(quoted(names), why) for names, why in rows(SECTIONS["Not here"])]


LISTED = [*SAME[""], *[n for names, *_ in OTHER for n in names], *[n for names, _ in ABSENT for n in names]]


def test_names_have_one_place() -> None:
    assert sorted(LISTED) == sorted(set(LISTED))
    assert len(LISTED) > 490


def test_every_name_of_numpy_is_listed() -> None:
    """Of the version that the page is about; names come and go."""
    version = re.search(r"main namespace \((\d+\.\d+)\)", PAGE.read_text("utf-8"))
    assert version
    if not np.__version__.startswith(f"{version[1]}."):
        pytest.skip(f"the page is about NumPy {version[1]}, this is {np.__version__}")
    listed = set(LISTED)
    assert set(np.__all__) - listed == set(), "NumPy has more"
    assert listed - set(np.__all__) - SOME_MACHINES == set(), "NumPy has no such names"


@pytest.mark.parametrize(("name", "space"), [("linalg", np.linalg), ("fft", np.fft)])
def test_every_name_of_the_extensions_is_there(name: str, space: ModuleType) -> None:
    assert sorted(SAME[name]) == sorted(space.__all__)
    assert [n for n in SAME[name] if n not in getattr(nnc, name).__all__] == []


def test_what_has_the_same_name_is_there() -> None:
    assert [n for n in SAME[""] if n not in nnc.__all__ or not hasattr(nnc, n)] == []


@pytest.mark.parametrize(("names", "ours", "note"), OTHER, ids=[", ".join(names) for names, *_ in OTHER])
def test_other_names_are_there(names: list[str], ours: list[str], note: str) -> None:
    assert ours and all(n.startswith("nnc.") for n in ours)
    assert [n for n in ours if public(n.removeprefix("nnc.")) is None] == []
    assert note or not set(names) & set(nnc.__all__), "a name that means something else here needs a note"


@pytest.mark.parametrize(("names", "why"), ABSENT, ids=[", ".join(names)[:60] for names, _ in ABSENT])
def test_what_is_not_here_says_why(names: list[str], why: str) -> None:
    assert len(why) > 15
    assert set(names) & set(nnc.__all__) == set()
    assert [n for n in quoted(why) if n.startswith("nnc.") and public(n.removeprefix("nnc.")) is None] == []


SCIPY = re.split(r"`scipy\.(linalg|special)`, as `nnc(?:\.linalg)?`", SECTIONS["SciPy's names"])


@pytest.mark.parametrize(("space", "text", "ours"), [
    (scipy.linalg, SCIPY[2], nnc.linalg), (scipy.special, SCIPY[4], nnc),
], ids=["linalg", "special"])  # fmt: skip
def test_names_of_scipy_are_there(space: ModuleType, text: str, ours: ModuleType) -> None:
    listed, beside = text.split("\n\n")[1:3]
    assert len(quoted(listed)) > 15
    assert [n for n in quoted(listed) if n not in ours.__all__ or not hasattr(space, n)] == []
    assert [n for n in quoted(beside) if n.startswith("nnc.") and public(n.removeprefix("nnc.")) is None] == []


SMOOTH = np.linspace(0.1, 0.9, 12).reshape(3, 4)
ALIKE = ("abs", "acos", "angle", "asinh", "cbrt", "cumsum", "deg2rad", "diff", "exp2", "fliplr", "hanning", "i0",
         "log1p", "median", "nanmean", "ptp", "ravel", "rot90", "sinc", "sort", "spacing", "std", "tril", "unwrap")


@pytest.mark.parametrize("name", ALIKE)
def test_the_same_name_means_the_same(name: str) -> None:
    """A sample of those that take one array, or a length."""
    given = 7 if name == "hanning" else SMOOTH
    x = nnc.asarray(given) if isinstance(given, np.ndarray) else given
    np.testing.assert_allclose(getattr(nnc, name)(x).numpy(), getattr(np, name)(given), rtol=1e-6, atol=1e-7)


NO_ANSWER = {"polynomial", "random"}
"""Modules of NumPy's; one of ours bears the second name."""


@pytest.mark.parametrize("name", sorted(n for names, *_ in OTHER for n in names if n not in NO_ANSWER))
def test_names_of_numpy_are_taken_or_answered(name: str) -> None:
    """`nnc.concatenate` is `nnc.concat`; of `nnc.vectorize` the error says what to write."""
    if name in nnc.__all__ or name == "shape":  # here a name of something else, or of a module
        return
    try:
        found = getattr(nnc, name)
    except nnc.errors.UnknownNameError as error:
        assert error.hint is not None
    else:
        means = [public(n.removeprefix("nnc.")) for names, ours, _ in OTHER if name in names for n in ours]
        assert found in means or found in (nnc.array, nnc.transpose)
