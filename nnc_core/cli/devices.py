"""`nnc devices`: what is installed, what of it works, and what to do about the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from nnc_core.base.cache_folder import PLUGIN_MARKS, PLUGIN_TRIALS, cache_folder
from nnc_core.base.config import config
from nnc_core.base.disk_cache import disk_cache
from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.stacks import PREFERENCE
from nnc_plugins import Marks, Trials
from nnc_plugins.discovery import BLOCK_VARIABLE
from nnc_plugins.doctor import DeviceProbe, ProbeResult, diagnose_all

if TYPE_CHECKING:
    from rich.console import Console

NEXT_STEPS = {
    "no device": "nothing to repair; what the plugin says above is how to get one",
    "import failed": "reinstall it with everything that it needs: pip install --force-reinstall {distribution}",
    "probe failed": "repair or reinstall the driver that the plugin names",
    "device failed": "repair or reinstall the driver, or name another device",
    "incompatible": "install a version made for this nnc: pip install --upgrade {distribution}",
    "blocked": "take its name out of {variable} to use it",
    "crashed": "update its driver, or keep it out with {variable}={name}",
    "hung": "try again with a longer --timeout, or keep it out with {variable}={name}",
}
STYLES = {"ok": "green", "no device": "yellow", "blocked": "yellow"}  # whatever else is wrong: red


@click.command()
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
              help="Seconds that each plugin may compute, or do nothing.")
@click.option("--all", "all_devices", is_flag=True, help="List the devices for tests too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def devices(timeout: float, all_devices: bool, as_json: bool) -> None:
    """List plugins and devices; each is made to work in a process of its own.

    The exit status is 0 unless no device works.
    """
    if as_json:
        results = list(_diagnosed(timeout))
        click.echo(json.dumps(_report(results, all_devices), indent=2))
    else:
        results = list(_printed(_diagnosed(timeout), all_devices))
    if not any(_computes(device) for result in results for device in result.devices):
        raise click.exceptions.Exit(1)


def _diagnosed(timeout: float) -> Iterator[ProbeResult]:
    return diagnose_all(timeout, options=config.as_dict(), marks=Marks(cache_folder() / PLUGIN_MARKS),
                        trials=Trials(disk_cache(PLUGIN_TRIALS)))


def _computes(device: DeviceProbe) -> bool:
    return device.state == "ok" and _kind(device) != "null"


def _kind(device: DeviceProbe) -> str:
    return device.id.partition(":")[0]


def default_device(results: Iterable[ProbeResult]) -> str | None:
    """The id that computing without naming a device would take, of the devices that work."""
    working = [device for result in results for device in result.devices if _computes(device)]
    return next((device.id for kind in PREFERENCE for device in working if _kind(device) == kind), None)


def next_step(result: ProbeResult) -> str:
    """The next step for a plugin that is not in order; "" for one that is."""
    step = NEXT_STEPS.get(result.state, "")
    distribution = result.source.partition(" ")[0] or result.name
    return step.format(name=result.name, distribution=distribution, variable=BLOCK_VARIABLE)


def _report(results: list[ProbeResult], all_devices: bool) -> dict[str, Any]:
    chosen = default_device(results)
    plugins = [{**asdict(result), "healthy": result.healthy, "next_step": next_step(result),
                "devices": [asdict(d) for d in result.devices if all_devices or d.id == chosen or _is_of_users(d)]}
               for result in results]
    return {"default": chosen, "plugins": plugins}


def _is_of_users(device: DeviceProbe) -> bool:
    """Tell whether a device is listed unasked: devices for tests are so if something is wrong with them."""
    return not device.testing or device.state != "ok"


def _printed(results: Iterator[ProbeResult], all_devices: bool) -> Iterator[ProbeResult]:
    """Print each result as it comes, then the default device."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    seen = []
    while (result := _awaited(results, console)) is not None:
        _print_plugin(result, console, all_devices)
        seen.append(result)
        yield result
    chosen = default_device(seen)
    console.print(f"default device: {chosen}" if chosen else "no device works")


def _awaited(results: Iterator[ProbeResult], console: Console) -> ProbeResult | None:
    waiting = console.status("examining plugins") if console.is_terminal else nullcontext()
    with waiting:
        return next(results, None)


def _print_plugin(result: ProbeResult, console: Console, all_devices: bool) -> None:
    from rich.text import Text

    head = Text.assemble((result.name, "bold"), f"  {result.source}  ",
                         (result.state, STYLES.get(result.state, "red")), f"  {result.seconds:.1f} s")
    console.print(head)
    for line in filter(None, (_remarks(result), _earlier(result), *result.diagnosis)):
        console.print(Text(f"    {line}"))
    shown = [device for device in result.devices if all_devices or _is_of_users(device)]
    for device in shown:
        _print_device(device, console)
    if len(shown) < len(result.devices):
        console.print(Text(f"    {len(result.devices) - len(shown)} devices for tests: --all lists them"), style="dim")
    if step := next_step(result):
        console.print(Text.assemble(("    next: ", "bold"), step))
    console.print()


def _earlier(result: ProbeResult) -> str:
    """The crash that keeps a plugin out of programs, or did until now."""
    if not result.crashed:
        return ""
    now = "it works now: programs use it again" if result.healthy else "programs leave it alone until it works here"
    return f"crashed last time, while it was {result.crashed}; {now}"


def _remarks(result: ProbeResult) -> str:
    """The detail, less what the lines of the devices say."""
    if result.state == "device failed":
        return ""
    ids = ", ".join(device.id for device in result.devices)
    return result.detail.removeprefix(ids).removeprefix("; ") if result.state == "ok" else result.detail


def _print_device(device: DeviceProbe, console: Console) -> None:
    from rich.text import Text

    name = device.spec.get("name") or device.describe
    console.print(Text.assemble(f"  {device.id:<20} ", (device.state, STYLES.get(device.state, "red")), f"  {name}"))
    if device.uid:
        console.print(Text(f"    {device.uid}"), style="dim")
    if device.detail:
        console.print(Text(f"    {device.detail}"))
    elif device.spec:
        console.print(Text(f"    {_facts(device.spec)}"), style="dim")


def _facts(spec: Mapping[str, Any]) -> str:
    memory = "memory not said" if spec["memory"] is None else _binary_size(spec["memory"])
    return " · ".join(filter(None, (spec["vendor"], spec["driver"], memory, _dtypes(spec["dtypes"]))))


def _binary_size(nbytes: int) -> str:
    return f"{nbytes / 2**30:.3g} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.3g} MiB"


def _dtypes(names: Iterable[str]) -> str:
    missing = sorted(set(ALL_DTYPES) - set(names))
    return f"all dtypes but {', '.join(missing)}" if missing else "all dtypes"
