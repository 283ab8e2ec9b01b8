"""A run's checkpoints in one file, and going on from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nnc_core.base.errors import NotSupportedError
from nnc_core.io.training_state import Generators, load_training_state, save_training_state
from nnc_core.io.training_state import Path as AnyPath

if TYPE_CHECKING:
    from nnc_core.nn import Module
    from nnc_core.optim import Progress
    from nnc_core.optim.owl import Params


class TrainingFile:
    """The file in which `optim.train` keeps a run, so that it goes on after its end, bit for bit::

        file = TrainingFile("run.safetensors", network)
        params = optim.owl.Params(checkpoint=optim.owl.checkpoint.EveryEpochs(1, file.save))
        optim.train(network, params, x, y, state=file.resume(params))

    `generators` are random generators besides those of the network, by name.
    """

    def __init__(self, path: AnyPath, network: Module, generators: Generators | None = None) -> None:
        self.path, self.network, self.generators = Path(path), network, generators

    def save(self, progress: Progress) -> None:
        """Write network, minimiser, random keys and progress; an old file stays until the new one is whole."""
        if progress.minimiser is None:
            raise NotSupportedError("this progress is of `optim.fit`, which does not know the minimiser",
                                    hint="save_training_state(path, network, minimiser, progress=progress)")
        save_training_state(self.path, self.network, progress.minimiser, self.generators, progress=progress)

    def resume(self, params: Params, *, exact: bool | None = None) -> Progress | None:
        """Put the run of the file into the network; its progress, with a minimiser as params makes it.  None where
        there is no file yet.  Raises what `load_training_state` does, to which `exact` goes."""
        from nnc_core.optim import Progress

        if not self.path.exists():
            return None
        progress = Progress(params.minimiser(self.network.named_parameters()))
        assert progress.minimiser is not None
        load_training_state(self.path, self.network, progress.minimiser, self.generators, progress=progress,
                            exact=exact)
        return progress

    def __repr__(self) -> str:
        return f"TrainingFile({str(self.path)!r})"
