"""The description of a run in a training file: JSON beside the arrays, checked field by field when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nnc_core.base.errors import FileFormatError, StateError
from nnc_core.base.fields import Test, are_texts, check_fields, is_list, is_text, parsed

KEY = "nnc.training"
SHOWN = 60
"""Characters of a setting that a message shows."""


@dataclass(frozen=True)
class TrainingHeader:
    """The minimiser's class and settings, its settings that are numbers, the place in the data, and the devices."""

    minimiser: Mapping[str, str]
    settings: Mapping[str, float]
    progress: Mapping[str, Any] | None
    devices: list[Mapping[str, Any]]
    """`id`, `name` and `driver` of each, and by which backend each command ran (`choices`)."""

    def text(self) -> str:
        return json.dumps(asdict(self))

    def check_minimiser(self, now: Mapping[str, str], what: str) -> None:
        """StateError unless the class and the settings are those of the run."""
        was = self.minimiser
        if was["class"] != now["class"]:
            raise StateError(f"{what} is that of {was['class']}, the minimiser is {now['class']}",
                             hint=f"load it into the minimiser of the run, {was['class']}")
        different = [f"{name} was {_shown(was.get(name))} and is {_shown(now.get(name))}"
                     for name in [*was, *[name for name in now if name not in was]] if was.get(name) != now.get(name)]
        if different:
            raise StateError(f"{what} is that of {was['class']} with other settings: {'; '.join(different)}",
                             hint="make the minimiser as it was; what is to change from here on is set after loading")


def header_of(metadata: dict[str, str], what: str) -> TrainingHeader:
    """Take what `save_training_state` added out of the metadata.  FileFormatError if it is something else."""
    text = metadata.pop(KEY, None)
    if text is None:
        raise FileFormatError(f"{what} has no description of a run, such as save_training_state writes",
                              hint="load_weights and load_arrays read other files")
    found = parsed(text, f"{what}: the description of the run")
    check_fields(found, _FIELDS, f"{what}: the description of the run", FileFormatError)
    for device in found["devices"]:
        check_fields(device, _DEVICE, f"{what}: the description of a device", FileFormatError)
    return TrainingHeader(**{name: found[name] for name in _FIELDS})


def _shown(text: str | None) -> str:
    return "not there" if text is None else text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


_FIELDS: Mapping[str, Test] = {
    "minimiser": lambda x: are_texts(x) and "class" in x,
    "settings": lambda x: isinstance(x, dict) and all(isinstance(v, (int, float)) for v in x.values()),
    "progress": lambda x: x is None or isinstance(x, dict),
    "devices": is_list,
}
_DEVICE: Mapping[str, Test] = {"id": is_text, "name": is_text, "driver": is_text, "choices": are_texts}
