"""The groups that claims are shown in, and the table of contents with a mark for every verdict."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from spanrl.paper.claims import experiments
from spanrl.paper.page.notation import plain
from spanrl.paper.page.parts import MARKS, small_mark

GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "evaluation": ("Evaluation and the problem", ("E0", "E1", "L2", "L3", "P1", "L5")),
    "operators": ("Operators", ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "O9")),
    "feasibility": ("Feasibility", ("F1", "F2", "F3")),
    "counterexamples": ("Counterexamples", ("X1", "X2", "X3")),
    "sets": ("Confidence sets and extended models", ("B1", "B2", "M1", "M2", "M3")),
    "guarantees": ("Guarantees", ("D1", "S1", "S2")),
    "learning": ("Learning", ("C0", "C1", "C2", "R1", "R2", "R3", "R4", "R5", "R6")),
}
"""Anchor → title and ids of the claims that are not about an experiment."""

EXPERIMENTS = {claim.id: str(claim.experiment) for claim in experiments.CLAIMS}
"""The claims about experiments, and the experiment each is about."""


def shown_with(name: str) -> str:
    """Return the claim beside which the figures and tables of an experiment stand: the first about it.

    >>> shown_with("G2"), shown_with("G5")
    ('G2', 'G2')
    """
    return next(first for first, about in EXPERIMENTS.items() if about == EXPERIMENTS[name])


BEYOND = {
    "slips": "Slips of the text",
    "bound": "Regret against the bound",
    "sweep": "When c is wrong",
    "planning": "The cost of planning",
}


def grouped(claims: Mapping[str, Any]) -> dict[str, tuple[str, list[str]]]:
    """Return anchor → title and those ids that there are; what belongs to no group comes last, so that nothing is hidden."""
    groups = {key: (title, [name for name in ids if name in claims]) for key, (title, ids) in GROUPS.items()}
    known = {name for _, ids in GROUPS.values() for name in ids} | set(EXPERIMENTS)
    rest = [name for name in claims if name not in known]
    return {key: group for key, group in (groups | {"others": ("Others", rest)}).items() if group[1]}


def ordered(claims: Mapping[str, Any]) -> list[str]:
    """Return the ids in the order of the page: the experiments, then group by group."""
    return [
        *(name for name in EXPERIMENTS if name in claims),
        *(name for _, ids in grouped(claims).values() for name in ids),
    ]


def wide_contents(claims: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of contents that stands beside the page on wide screens."""
    return f'<nav class="toc toc-wide" aria-label="Contents">\n<p class="toc-title">Contents</p>\n{_contents(claims)}</nav>'


def narrow_contents(claims: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the same, folded, for narrow screens; a style sheet alone cannot fold what is open."""
    return f'<nav class="toc toc-narrow" aria-label="Contents"><details><summary>Contents</summary>\n{_contents(claims)}</details></nav>'


def _contents(claims: Mapping[str, Mapping[str, Any]]) -> str:
    graphs = _part("domains", "The MDPs", "")
    tried = _part("experiments", "Experiments", _claims(claims, [name for name in EXPERIMENTS if name in claims]))
    groups = "".join(_part(key, title, _claims(claims, ids)) for key, (title, ids) in grouped(claims).items())
    beyond = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title in BEYOND.items())
    rest = _part("beyond", "Beyond the paper", f'<ul class="toc-list">{beyond}</ul>') + _part(
        "making", "How it was made", ""
    )
    return f'<ul class="toc-parts">{graphs}{tried}{groups}{rest}</ul>\n{_legend()}'


def _part(key: str, title: str, inner: str) -> str:
    return f'<li><a class="toc-part" href="#{key}">{escape(title)}</a>{inner}</li>\n'


def _claims(claims: Mapping[str, Mapping[str, Any]], ids: list[str]) -> str:
    items = "".join(_claim(name, claims[name]) for name in ids)
    return f'<ul class="toc-claims">{items}</ul>'


def _claim(name: str, entry: Mapping[str, Any]) -> str:
    key, title = escape(name), escape(plain(entry["title"]))
    return f'<li><a href="#claim-{key}" title="{title}">{small_mark(entry)}{key}</a></li>'


def _legend() -> str:
    words = {"holds": "holds", "fails": "fails", "vacuous": "vacuous", "not-run": "not run"}
    signs = " · ".join(f"{MARKS[key]} {word}" for key, word in words.items())
    return f'<p class="toc-legend">{signs}; with ! it is not what is expected.</p>'
