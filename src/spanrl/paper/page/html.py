"""The page of the reproduction: one HTML file that holds its style, its program, its figures and its data, and needs no network.

A part that cannot be made, because a formula is broken on purpose or a file is missing, says so in its place; the rest of the page stands.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from spanrl import __version__
from spanrl.paper.page.beyond import beyond_section
from spanrl.paper.page.claims import claims_section
from spanrl.paper.page.contents import narrow_contents, wide_contents
from spanrl.paper.page.domains import domains_section
from spanrl.paper.page.experiments import experiments_section
from spanrl.paper.page.making import Spent, making_section
from spanrl.paper.page.notation import formula
from spanrl.paper.page.parts import Figures, badge
from spanrl.paper.page.summary import AUTHORS, PAPER, facts, unexpected
from spanrl.report.text import UNKNOWN, plural

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


def page(found: Reproduction, drawn: Figures, time: Spent) -> str:
    """Return the HTML of the reproduction."""
    experiments = found.experiments
    return Template(_part("spanrl.paper.page", "reproduction.html")).substitute(
        version=__version__,
        nonce=secrets.token_urlsafe(16),  # the browser runs our script and no other
        css=_part("spanrl.report", "page.css")
        + _part("spanrl.paper.page", "knight.css")
        + _part("spanrl.paper.page", "reproduction.css"),
        js=_part("spanrl.paper.page", "knight.js") + _part("spanrl.paper.page", "reproduction.js"),
        paper=PAPER,
        authors=AUTHORS,
        scale=escape(found.scale),
        begun=escape(str(found.run.get("begun", UNKNOWN))),
        facts=_facts(found, time),
        surprises=_surprises(found),
        wide_contents=wide_contents(found.claims),
        narrow_contents=narrow_contents(found.claims),
        domains=domains_section(),
        experiments=experiments_section(found.claims, experiments, drawn),
        claims=claims_section(found.claims),
        beyond=beyond_section(found, drawn),
        making=making_section(found.run, found.scale, time, drawn),
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _facts(found: Reproduction, time: Spent) -> str:
    inner = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in facts(found, time).items()
    )
    return f'<dl class="facts">{inner}</dl>'


def _surprises(found: Reproduction) -> str:
    names = unexpected(found)
    if not names:
        return ""
    items = "".join(_surprise(name, found.claims[name]) for name in names)
    return (
        f'<div class="alarm" role="alert"><p class="alarm-title">{plural(len(names), "claim")} not as expected</p>\n'
        f"<ul>{items}</ul></div>"
    )


def _surprise(name: str, entry: Mapping[str, Any]) -> str:
    return f'<li><a href="#claim-{escape(name)}">{escape(name)}</a> {formula(entry["title"])} {badge(entry)}</li>'


def _part(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text("utf-8")
