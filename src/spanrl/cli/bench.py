"""The command bench."""

from __future__ import annotations

from dataclasses import asdict

from spanrl.cli.output import Json, Settings, TextTable, compiling, print_json, show, tell


def bench(as_json: Json = False) -> None:
    """Measure how fast simulation, learning and planning are on this machine, in less than a minute."""
    from spanrl.bench import machine, measure

    here = machine()
    with compiling("bench", 40):
        found = measure(tell=lambda what: None if Settings.quiet else tell(f"measuring {what} …"))
    if as_json:
        print_json({"machine": here, "measurements": [asdict(one) for one in found]})
        return
    table = TextTable("what", "median", "smallest", "unit")
    for one in found:
        table.add_row(one.name, f"{one.value:.3g}", f"{one.least:.3g}", one.unit)
    show(table)
    print(f"{here['processor']}, {here['cores']} cores, load {here['load']} at the start; Python {here['python']}.")
