"""`nnc cache`: what is kept on disk between processes, where, and how to be rid of it."""

from __future__ import annotations

import click

from nnc_core.base.cache_folder import cache_folder
from nnc_core.base.config import config
from nnc_core.base.disk_cache import DiskCache, disk_caches


@click.group(invoke_without_command=True)
@click.pass_context
def cache(context: click.Context) -> None:
    """Show what is kept on disk between processes.

    All of it can be made again: `nnc cache clear` removes it.
    """
    if context.invoked_subcommand is None:
        click.echo(cache_folder())
        for found in disk_caches():
            click.echo(f"  {_described(found)}")


@cache.command()
def clear() -> None:
    """Remove it all; processes that run are not disturbed."""
    for found in disk_caches():
        click.echo(f"{found.path}: {_size(found.clear())} removed")


def _described(found: DiskCache) -> str:
    sizes = [entry.nbytes for entry in found.entries()]
    return f"{found.path.name:<20} {_size(sum(sizes))} in {len(sizes):,} entries, at most {_size(config.cache_limit)}"


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**20:,.1f} MiB"
