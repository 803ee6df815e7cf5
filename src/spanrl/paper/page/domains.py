"""The MDPs of the paper: drawn as graphs, with their constants, and Knight Quest on its board."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from spanrl.envs.registry import make
from spanrl.models.solution import Analysis
from spanrl.paper.page.contents import TITLES
from spanrl.paper.page.graphs import mdp_graph
from spanrl.paper.page.knight import knight_figure
from spanrl.paper.page.notation import number, plain
from spanrl.paper.page.parts import guarded, part
from spanrl.paper.page.wording import value
from spanrl.planning.analyse import analyse
from spanrl.report.templates import Markup
from spanrl.report.text import UNKNOWN


class Domain(NamedTuple):
    """A small MDP: its name, a title, what it is there for, and the claims that use it."""

    env: str
    title: str
    sentence: str
    claims: tuple[str, ...]


DOMAINS = (
    Domain(
        "two-state",
        "Two states",
        "Staying in s1 is best. With a bound ½ < c < 1 on the span the best policy mixes its actions in s1.",
        ("E1", "L2", "L3", "F3", "R3"),
    ),
    Domain(
        "three-state[delta=0.005]",
        "Three states, δ = 0.005",
        "s1 is reached only with probability δ, so that the diameter is 1/δ, while the span of the optimal bias stays near 1.",
        ("G1", "G2", "G5", "G6", "G7", "R4"),
    ),
    Domain(
        "three-state[delta=0]",
        "Three states, δ = 0",
        "s1 is out of reach and the diameter infinite. Who does not know that, and has no bound on the span, goes on looking for s1.",
        ("G3",),
    ),
)

COUNTEREXAMPLES = (
    Domain(
        "counterexample-nonfeasible",
        "T_c belongs to no decision rule",
        "At v = 0 and c = ½ no decision rule attains T_c v, although playing a0 everywhere keeps the bound.",
        ("X1",),
    ),
    Domain(
        "counterexample-fixed-point",
        "Infeasible at its fixed point",
        "With c = 0.7 the fixed point of T_c is the bias of no policy.",
        ("X2",),
    ),
    Domain(
        "counterexample-fixed-point[extra_action=true]",
        "The same, with another action",
        "With a2, infinitely many policies keep the bound, and still the fixed point is the bias of none.",
        ("X2",),
    ),
    Domain(
        "counterexample-cycle",
        "Iterates that cycle",
        "For c ≤ 1/(2 − δ) the iterates of T_c from 0 have period two for ever; averaging them converges.",
        ("X3",),
    ),
    Domain(
        "counterexample-cycle[duplicate=true]",
        "The same, with a second action",
        "a1 moves as a0 does and pays nothing. Now a policy keeps every bound, and the iterates cycle as before.",
        ("X3",),
    ),
)

KNIGHT = Domain(
    "knight-quest",
    "Knight Quest",
    "A knight collects gold, buys a key and frees a princess, while a dragon roams about her castle:",
    ("G4",),
)


class ShownDomain(NamedTuple):
    """What is shown of an MDP: its graph and its constants; the graph of Knight Quest is its board."""

    domain: Domain
    graph: Markup
    constants: Mapping[str, str]


def domains_section() -> Markup:
    """Return the graphs with a sentence and the constants of each, then Knight Quest."""
    graphs, counterexamples = (
        [guarded(domain.title, partial(_shown, domain)) for domain in them] for them in (DOMAINS, COUNTEREXAMPLES)
    )
    knight = guarded("Knight Quest", _knight)
    return part("domains", title=TITLES["domains"], graphs=graphs, counterexamples=counterexamples, knight=knight)


def _shown(domain: Domain) -> ShownDomain:
    env = make(domain.env)
    facts = analyse(env.mdp)
    graph = mdp_graph(env, caption=plain(domain.title), policy=facts.policy)
    return ShownDomain(domain, graph, _constants(facts))


def _knight() -> ShownDomain:
    facts = analyse(make(KNIGHT.env).mdp)
    size = f"{facts.n_states} states, {facts.n_actions} actions, at most {facts.max_support} successors of a pair."
    domain = KNIGHT._replace(sentence=f"{KNIGHT.sentence} {size}")
    return ShownDomain(domain, knight_figure(), _constants(facts))


def _constants(facts: Analysis) -> dict[str, str]:
    return {
        "gain g*": UNKNOWN if facts.gain is None else value(facts.gain),
        "span sp(h*)": UNKNOWN if facts.span is None else value(facts.span),
        "diameter D": UNKNOWN if facts.diameter is None else number(round(facts.diameter, 6)),
        "class": facts.classification,
    }
