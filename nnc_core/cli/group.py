"""The commands of `nnc`, and how its errors look."""

from __future__ import annotations

from typing import Any

import click

from nnc_core import __version__
from nnc_core.base.errors import Error
from nnc_core.cli.cache import cache
from nnc_core.cli.demo import demo
from nnc_core.cli.devices import devices
from nnc_core.cli.graph import graph
from nnc_core.cli.models import run, show


class CommandGroup(click.Group):
    """Errors of nnc are messages, not tracebacks; the exit status is 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Error as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="nnc-core")
def nnc() -> None:
    """Computation graphs and neural networks on any device."""


for command in (cache, demo, devices, graph, run, show):
    nnc.add_command(command)
