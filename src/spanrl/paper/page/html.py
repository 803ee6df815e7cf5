"""The page of the reproduction: one HTML file that holds its style, its program, its figures and its data, and needs no network.

A part that cannot be made, because a formula is broken on purpose or a file is missing, says so in its place; the rest of the page stands.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spanrl import __version__
from spanrl.paper.page.beyond import NO_SLIPS, SLIPS_INTRO, beyond
from spanrl.paper.page.claims import MARKS, ShownClaim
from spanrl.paper.page.contents import BOUND, EXPERIMENTS, PLANNING, TITLES, grouped
from spanrl.paper.page.domains import domains_section
from spanrl.paper.page.experiments import NOTE, shown_experiments
from spanrl.paper.page.making import Spent, busy_table, command, dominates, part_table, provenance
from spanrl.paper.page.parts import ALL, Figures, Missing, figures, part
from spanrl.paper.page.summary import AUTHORS, PAPER, facts, unexpected, unheld
from spanrl.report.table import Table
from spanrl.report.text import LEVEL, UNKNOWN

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


def page(found: Reproduction, drawn: Figures, time: Spent) -> str:
    """Return the HTML of the reproduction."""
    return part(
        "reproduction",
        version=__version__,
        nonce=secrets.token_urlsafe(16),  # the browser runs our script and no other
        paper=PAPER,
        authors=AUTHORS,
        scale=found.scale,
        begun=str(found.run.get("begun", UNKNOWN)),
        numbers=facts(found, time),
        surprises=unexpected(found),
        unheld=unheld(found),
        signs=MARKS,
        claims={name: ShownClaim(name, entry) for name, entry in found.claims.items()},
        groups=grouped(found.claims),
        experiment_claims=[name for name in EXPERIMENTS if name in found.claims],
        domains=domains_section(),
        experiments=shown_experiments(found, drawn),
        level=LEVEL,
        note=NOTE,
        beyond=beyond(found, drawn),
        titles=TITLES,
        bound_title=BOUND,
        planning_title=PLANNING,
        slips_intro=SLIPS_INTRO,
        no_slips=Missing(NO_SLIPS, ALL),
        command=command(found.scale),
        dominates=dominates(time),
        time_figures=figures(drawn, "time"),
        time_tables=[part_table(time), busy_table(time)],
        provenance=Table(
            (), list(provenance(found.run, found.scale).items()), "Machine and versions", "plain untitled"
        ),
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
