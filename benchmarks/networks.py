"""The zoo planned for the null device: size of each graph, where compile time goes, planned memory against the bound.

Nothing is computed and no weights are drawn; times are those of the processor.  Training is forward, backward and
update (SGD with momentum; Adam for texts) in one graph.  NNC needs 2,743 MiB for ResNet-50 at batch 32, compiles
ResNet-50 with a static schedule in 29-38 ms and ResNet-101 in 126-170 ms; its plans are 1.00-1.33 times the bound over
18 networks.

`python -m benchmarks.networks [NAME ...]`; with --profile, the functions that take most of the time.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import process_time
from typing import Any

import nnc_core as nnc
from benchmarks._measure import show
from nnc_core import nn, optim
from nnc_core.engine import ComputationGraph, pipeline, planning, schedule
from nnc_core.engine.build import KernelBuilder
from nnc_core.engine.memory import MemoryPlan
from nnc_core.engine.schedule import Scheduler
from nnc_core.graph import Graph
from nnc_core.nn import zoo
from nnc_core.recording.compiled import CompiledGraph

DEVICE = "null:0"
MEBIBYTE = 2**20
Batch = tuple[nnc.Tensor, ...]


# ---- where time goes
PARTS = ("trace", "optimise", "fuse", "schedule", "plan", "allocate", "build", "bind")
"""Python that traces and differentiates; rewriting; joining operators; ordering; choosing what shares memory; offsets
in the arena; building code; records."""
WATCHED: tuple[tuple[Any, str, str], ...] = (
    (pipeline.Phases, "compile", "bind"), (ComputationGraph, "__init__", "bind"),
    *[(Graph, name, "optimise") for name in ("inline", "recognise", "expand", "optimise", "rebuilt")],
    (pipeline.Phases, "fuse", "fuse"), (schedule, "fuse", "fuse"), (Scheduler, "tree", "schedule"),
    (planning, "make_plan", "plan"), (planning, "lay_out_arena", "allocate"), (KernelBuilder, "build", "build"),
)  # fmt: skip


class Stopwatch:
    """Seconds of the processor for each part, without those of the parts called by it."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._part, self._since = "trace", process_time()

    def turn_to(self, part: str) -> str:
        """From now on time counts for this part; the one until now."""
        now, before = process_time(), self._part
        self.seconds[before] += now - self._since
        self._part, self._since = part, now
        return before

    @contextmanager
    def watching(self) -> Iterator[None]:
        """What the table above names is timed in this block, all else is the first part."""
        with ExitStack() as stack:
            for owner, name, part in WATCHED:
                original = getattr(owner, name)
                setattr(owner, name, self._clocked(original, part))
                stack.callback(setattr, owner, name, original)
            self.turn_to("trace")
            self.seconds = dict.fromkeys(PARTS, 0.0)
            yield
            self.turn_to("trace")

    def _clocked(self, f: Callable[..., Any], part: str) -> Callable[..., Any]:
        def clocked(*args: Any, **kwargs: Any) -> Any:
            before = self.turn_to(part)
            try:
                return f(*args, **kwargs)
            finally:
                self.turn_to(before)

        return clocked


# ---- networks
def images(batch: int, side: int, width: int | None = None) -> Batch:
    return (nnc.zeros((batch, side, width or side, 3)),)


def labelled(batch: int, side: int) -> Batch:
    return (*images(batch, side), nnc.zeros(batch, dtype=nnc.int64))


def tokens(*shape: int) -> nnc.Tensor:
    return nnc.zeros(shape, dtype=nnc.int64)


def cross_entropy(network: nn.Module, x: nnc.Tensor, labels: nnc.Tensor) -> nnc.Tensor:
    return nnc.cross_entropy(network(x), labels)


def own_loss(network: Any, *batch: nnc.Tensor) -> nnc.Tensor:
    loss: nnc.Tensor = network.loss(*batch)
    return loss


def detection_loss(network: zoo.MaskRCNN, x: nnc.Tensor, *targets: nnc.Tensor) -> nnc.Tensor:
    return network.losses(x, zoo.Targets(*targets)).sum


def detection_targets(height: int, width: int, regions: int = 512, masks: int = 128) -> Batch:
    """For one image; anchors as many as its pyramid has."""
    count = sum(3 * -(-height // stride) * -(-width // stride) for stride in (4, 8, 16, 32, 64))
    return (*images(1, height, width), tokens(1, count), nnc.zeros((1, count, 4)), nnc.zeros((1, regions, 4)),
            tokens(1, regions), nnc.zeros((1, regions, 4)), nnc.zeros((1, masks, 28, 28)))


SGD = partial(optim.SGD, learning_rate=0.1, momentum=0.9)
ADAM = partial(optim.Adam, learning_rate=1e-3)


@dataclass(frozen=True)
class Case:
    """A network, what it is given, and what NNC needs for its training (MiB, ms), where that is known."""

    build: Callable[[], Any]
    batch: int
    given: Callable[[], Batch]
    trained_on: Callable[[], Batch]
    loss: Callable[..., nnc.Tensor] = cross_entropy
    minimiser: Callable[..., optim.Minimiser] = SGD
    peer: tuple[str, str] = ("", "")


def classifier(build: Callable[[], Any], batch: int, side: int = 224, **options: Any) -> Case:
    return Case(build, batch, partial(images, batch, side), partial(labelled, batch, side), **options)


def digits() -> Batch:
    return nnc.zeros((100, 28, 28, 1)), tokens(100)


def text(batch: int, length: int) -> Batch:
    return (tokens(batch, length),)


def pair(batch: int, length: int) -> Batch:
    return tokens(batch, length), tokens(batch, length)


CASES: dict[str, Case] = {
    "LeNet": Case(zoo.owl_lenet, 100, lambda: digits()[:1], digits),
    "VGG-16": classifier(zoo.vgg16, 32),
    "GoogLeNet": classifier(partial(zoo.googlenet, auxiliary=True), 32, loss=own_loss),
    "ResNet-50": classifier(zoo.resnet50, 32, peer=("2743", "29-38")),
    "ResNet-101": classifier(zoo.resnet101, 32, peer=("", "126-170")),
    "DenseNet-121": classifier(zoo.densenet121, 32),
    "EfficientNet-B0": classifier(zoo.efficientnet_b0, 32),
    "InceptionV3": classifier(partial(zoo.inception_v3, auxiliary=True), 32, 299, loss=own_loss),
    "Mask R-CNN": Case(zoo.mask_rcnn, 1, lambda: images(1, 800, 1344), lambda: detection_targets(800, 1344),
                       detection_loss),
    "LSTM": Case(zoo.lstm_language_model, 32, lambda: text(32, 35), lambda: text(32, 36), own_loss, ADAM),
    "Transformer": Case(zoo.transformer, 32, lambda: pair(32, 64), lambda: pair(32, 65), own_loss, ADAM),
}  # fmt: skip


# ---- measuring
@dataclass
class Compiled:
    """A compiled graph and the seconds that each part of compiling it took."""

    graph: CompiledGraph
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def plan(self) -> MemoryPlan:
        return self.graph.memory_plan

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def prepared(case: Case, training: bool) -> Callable[[], CompiledGraph]:
    """A function that compiles the network for its batch; a new one each time, so that nothing is kept."""
    network = case.build().train(training)
    batch = case.trained_on() if training else case.given()
    if not training:
        return lambda: nnc.jit(lambda *given: network(*given)).lower(*batch)
    minimiser = case.minimiser(network.named_parameters())
    loss = nn.value_and_grad(network, partial(case.loss, network))
    return lambda: optim.make_step(loss, minimiser).lower(*batch)  # type: ignore[attr-defined]


def measured(case: Case, training: bool, repeats: int = 3) -> Compiled:
    """Compiled some times, and the time of the fastest."""
    with nnc.use_device(DEVICE):
        compile_once = prepared(case, training)
        found: list[Compiled] = []
        for _ in range(repeats):
            watch = Stopwatch()
            with watch.watching():
                graph = compile_once()
            found.append(Compiled(graph, watch.seconds))
    return min(found, key=lambda c: c.total)


def profile(case: Case, training: bool, lines: int = 40) -> None:
    """Print the functions in which most time is spent when it is compiled."""
    with nnc.use_device(DEVICE):
        compile_once = prepared(case, training)
        compile_once()
        profiler = cProfile.Profile()
        profiler.runcall(compile_once)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(lines)


# ---- tables
def mebibytes(nbytes: int) -> str:
    mebi = nbytes / MEBIBYTE
    return f"{mebi:,.0f}" if mebi >= 100 else f"{mebi:.1f}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f}"


def memory_row(name: str, compiled: Compiled, peer: str) -> list[str]:
    plan = compiled.plan
    written, run = len(compiled.graph.source.nodes), len(compiled.graph.graph.nodes)
    return [name, str(written), str(run), str(plan.commands), mebibytes(plan.peak), mebibytes(plan.bound),
            f"{plan.ratio:.3f}", mebibytes(plan.total), plan.planner.replace("_", " "), peer]


def time_row(name: str, compiled: Compiled, peer: str) -> list[str]:
    return [name, *[milliseconds(compiled.seconds[part]) for part in PARTS], milliseconds(compiled.total), peer]


def table(names: Sequence[str]) -> None:
    memory, times = [], []
    for name in names:
        case = CASES[name]
        for training in (False, True):
            compiled = measured(case, training)
            size, ms = case.peer if training else ("", "")
            title = "training" if training else f"{name} x{case.batch}"
            memory.append(memory_row(title, compiled, size))
            times.append(time_row(title, compiled, ms))
    show("Nodes written, nodes optimised, commands; planned memory, MiB",
         ["", "nodes", "opt.", "cmds", "peak", "bound", "ratio", "sum", "planner", "NNC"], memory)
    show("Compiling, ms", ["", *PARTS, "total", "NNC"], times)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description="Plan the networks of the zoo.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--profile", action="store_true", help="print where compile time of training goes")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(CASES)):
        parser.error(f"no network {', '.join(unknown)}; there are {', '.join(CASES)}")
    names = options.names or list(CASES)
    if options.profile:
        for name in names:
            print(name)
            profile(CASES[name], training=True)
        return
    table(names)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
