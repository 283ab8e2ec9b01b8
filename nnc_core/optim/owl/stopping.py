"""Stopping rules, which are asked after each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnc_core.base.errors import DataError
from nnc_core.optim.settings import COUNT_OR_NONE, FINITE, check_all

if TYPE_CHECKING:
    from nnc_core.optim.runs.progress import Progress


class Stopping:
    """A rule."""

    needs_validation = False
    """True if it looks at the loss on other data."""

    def reason(self, progress: Progress) -> str | None:
        """The reason why the run ends now, or None."""
        return None

    def check(self, has_validation: bool) -> None:
        """DataError for a rule that could never be asked."""


@dataclass(frozen=True)
class Const(Stopping):
    """As soon as the loss is below a."""

    a: float = 1e-6

    def __post_init__(self) -> None:
        check_all(self, a=FINITE)

    def reason(self, progress: Progress) -> str | None:
        return f"the loss is below {self.a}" if progress.losses[-1] < self.a else None


@dataclass(frozen=True)
class Early(Stopping):
    """Stop when the loss of a batch has not fallen below the least one for `stagnation` batches, or the loss on
    validation data, which is taken after each epoch, has not for `overfitting` epochs.  None switches either off."""

    stagnation: int | None = 750
    overfitting: int | None = 10

    def __post_init__(self) -> None:
        check_all(self, stagnation=COUNT_OR_NONE, overfitting=COUNT_OR_NONE)

    def check(self, has_validation: bool) -> None:
        if self.overfitting is not None and not has_validation:
            raise DataError("overfitting shows on validation data, and there are none", operator="Early",
                            hint="give validation=(x, y), or Early(stagnation, overfitting=None)")

    def reason(self, progress: Progress) -> str | None:
        if self.stagnation is not None and since_least(progress.losses) >= self.stagnation:
            return f"the loss has not fallen for {self.stagnation} batches"
        if self.overfitting is not None and since_least(progress.validation_losses) >= self.overfitting:
            return f"the validation loss has not fallen for {self.overfitting} epochs"
        return None


def since_least(losses: list[float]) -> int:
    """The number of losses after the first of the least ones; those that are no numbers are never least."""
    if not losses:
        return 0
    least = min((x for x in losses if x == x), default=losses[0])
    return len(losses) - 1 - next((i for i, x in enumerate(losses) if x == least), 0)
