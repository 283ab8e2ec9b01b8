"""Texts: values of the host."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import operator


def texts(found: Any, shape: Any = None) -> Host:
    """Texts as an array of objects."""
    listed = list(found)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array if shape is None else array.reshape(shape)


@operator("StringConcat")
def string_concat(a: Host, b: Host) -> Host:
    a, b = np.broadcast_arrays(a, b)
    return texts((x + y for x, y in zip(a.flat, b.flat, strict=True)), a.shape)


@operator("StringSplit")
def string_split(x: Host, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Host, Host]:
    """Parts along a new last axis, filled up with empty texts, and how many each text has."""
    parts = [text.split(delimiter or None, -1 if maxsplit is None else maxsplit) if text else [] for text in x.flat]
    counts = np.asarray([len(p) for p in parts], np.int64).reshape(x.shape)
    width = max((len(p) for p in parts), default=0)
    return texts((t for p in parts for t in p + [""] * (width - len(p))), (*x.shape, width)), counts


CASES: Mapping[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}


@operator("StringNormalizer", since=10)
def string_normalizer(x: Host, *, case_change_action: str = "NONE", is_case_sensitive: int = 0, locale: str = "",
                      stopwords: tuple[str, ...] = ()) -> Host:
    """Texts in one case, without stop words; nothing left is one empty text."""
    change: Callable[[str], str] = CASES[case_change_action]
    stop = set(stopwords) if is_case_sensitive else {word.lower() for word in stopwords}
    rows = [[change(t) for t in row if (t if is_case_sensitive else t.lower()) not in stop]
            for row in (x if x.ndim == 2 else [x])]
    kept = rows[0] or [""]
    return texts(kept, (1, len(kept)) if x.ndim == 2 else None)


@operator("RegexFullMatch", since=20)
def regex_full_match(x: Host, *, pattern: str) -> Host:
    matcher = re.compile(pattern)
    return np.asarray([matcher.fullmatch(text) is not None for text in x.flat], bool).reshape(x.shape)
