"""Names of devices besides their ids: "opencl:intel" is one of its kind by a word of its vendor, driver or name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

Descriptions = Mapping[str, Sequence[str]]
"""By id, the texts that say which device it is, the most telling ones first."""
_WORD = re.compile(r"[a-z][a-z0-9]{2,}")


def named(name: str, descriptions: Descriptions) -> str | None:
    """The id of a device by its id, its kind alone, or kind and words: the first in which they stand earliest."""
    kind, _, words = name.lower().partition(":")
    id = f"{kind}:{words or 0}"
    if id in descriptions or not any(map(str.isalpha, words)):
        return id if id in descriptions else None
    found = [(place, id) for id in descriptions if id.partition(":")[0] == kind
             for place, text in enumerate((*descriptions[id], " ".join(descriptions[id])))
             if _has(text, f"{kind}:", words)]
    return min(found, key=lambda one: one[0])[1] if found else None


def _has(text: str, prefix: str, words: str) -> bool:
    """Tell whether a text has the words, beginning where one of its own begins."""
    wanted = re.sub(r"[^a-z0-9]+", " ", words).strip()
    plain = re.sub(r"[^a-z0-9]+", " ", text.lower().removeprefix(prefix))
    return bool(wanted) and f" {wanted}" in f" {plain}"


def similar(name: str, descriptions: Descriptions) -> list[str]:
    """Names like one that is none."""
    known = dict.fromkeys(word for id in descriptions for word in (id, *_words(id, descriptions[id])))
    return get_close_matches(name.lower(), known, n=3)


def _words(id: str, texts: Sequence[str]) -> Iterator[str]:
    kind = id.partition(":")[0]
    yield kind
    for text in texts:
        yield from (f"{kind}:{word}" for word in _WORD.findall(text.lower().removeprefix(f"{kind}:")))
