"""The section of claims: every statement of the paper with its verdict, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from spanrl.paper.claims.base import WHY
from spanrl.paper.page.contents import grouped
from spanrl.paper.page.notation import formula
from spanrl.paper.page.parts import badge, numbers_table
from spanrl.report.text import plural

Claims = Mapping[str, Mapping[str, Any]]

_BUTTONS = (
    '<div class="controls" id="all-numbers" role="group" aria-label="All numbers of the theory" hidden>'
    '<button type="button" data-do="open">Open all numbers</button><button type="button" data-do="close">Close all</button></div>'
)


def claims_section(claims: Claims) -> str:
    """Return the claims that are not about an experiment, group by group."""
    groups = "\n".join(
        f'<section class="claims" aria-labelledby="{key}">\n<h3 id="{key}">{escape(title)}</h3>\n<div class="claim-cards">\n'
        + "\n".join(claim_card(name, claims[name]) for name in ids)
        + "\n</div>\n</section>"
        for key, (title, ids) in grouped(claims).items()
    )
    return (
        '<section aria-labelledby="claims">\n<h2 id="claims">Statements of the theory</h2>\n'
        "<p>Exact statements are checked in exact arithmetic or to rounding, general ones on random instances against an oracle that "
        "shares no code with what it checks (a linear programme, enumeration, policy iteration), statistical ones by seeded runs at a "
        "stated level. Worst excess is by how much an inequality was missed at worst, over all instances; it must stay below the "
        f"tolerance, and a negative one has room to spare.</p>\n{_BUTTONS}\n{groups}\n</section>"
    )


def claim_card(name: str, entry: Mapping[str, Any]) -> str:
    """Return a claim as an article: heading with its own link, verdict, statement, tolerance, numbers."""
    key = escape(name)
    return (
        f'<article class="claim" aria-labelledby="claim-{key}">\n{claim_head(name, entry, level=4)}\n'
        f"{claim_body(name, entry)}\n</article>"
    )


def claim_head(name: str, entry: Mapping[str, Any], *, level: int) -> str:
    """Return the heading of a claim, its verdict and its place in the paper."""
    key = escape(name)
    return (
        f'<h{level} id="claim-{key}" class="claim-title"><a class="self" href="#claim-{key}"><span class="claim-id">{key}</span></a> '
        f"{formula(entry['title'])}</h{level}>\n"
        f'<p class="claim-facts">{badge(entry)} <span class="place">{formula(entry["place"])}</span></p>'
    )


def claim_body(name: str, entry: Mapping[str, Any]) -> str:
    """Return the statement, the reason where the verdict is expected not to hold, the tolerance, and the numbers."""
    reason = f'<p class="reason"><strong>Why:</strong> {formula(entry["reason"])}</p>\n' if entry.get("reason") else ""
    return (
        f'<p class="statement">{formula(entry["statement"])}</p>\n{_broke(entry)}{reason}'
        f'<p class="tolerance"><span>Tolerance or level:</span> {formula(entry["tolerance"])}</p>\n{_numbers(name, entry)}'
    )


def what_broke(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a verdict other than ``holds`` rests on, as its heading and the words of the checker; ("", "") where there are none."""
    numbers, verdict = entry["numbers"], str(entry["verdict"])
    told = [str(numbers[key]) for key in WHY if key in numbers]
    if verdict == "holds" or not told:
        return "", ""
    vacuous = "No conclusion:" if "no conclusion" in numbers else "What never occurred:"
    words = {"fails": "What failed:", "vacuous": vacuous, "not-run": "Why not:"}
    return words.get(verdict, "Why:"), "; ".join(told)


def _broke(entry: Mapping[str, Any]) -> str:
    heading, words = what_broke(entry)
    return f'<p class="broke"><strong>{heading}</strong> {formula(words)}</p>\n' if words else ""


def _numbers(name: str, entry: Mapping[str, Any]) -> str:
    numbers = entry["numbers"]
    if entry["verdict"] == "not-run":
        return ""
    if not numbers:
        return '<p class="empty">The checker gave no numbers.</p>'
    inner = numbers_table(numbers, f"Numbers behind {name}, at scale {entry.get('scale', '')}.")
    return f'<details class="numbers"><summary>{plural(len(numbers), "number")}</summary>\n{inner}</details>'
