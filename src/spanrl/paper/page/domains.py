"""The MDPs of the paper: drawn as graphs, with their constants, and Knight Quest on its board."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import NamedTuple

from spanrl.envs.registry import make
from spanrl.models.solution import Analysis
from spanrl.paper.page.graphs import mdp_graph
from spanrl.paper.page.knight import knight_figure
from spanrl.paper.page.notation import formula, number, plain
from spanrl.paper.page.parts import guarded
from spanrl.paper.page.wording import value
from spanrl.planning.analyse import analyse
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
        ("G1", "G2", "R4"),
    ),
    Domain(
        "three-state[delta=0]",
        "Three states, δ = 0",
        "s1 is out of reach and the diameter infinite. Who does not know that, and has no bound on the span, goes on looking for s1.",
        ("G3",),
    ),
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


def domains_section() -> str:
    """Return the graphs with a sentence and the constants of each, then Knight Quest."""
    graphs = "\n".join(guarded(domain.title, partial(_graph, domain)) for domain in DOMAINS)
    return (
        '<section aria-labelledby="domains">\n<h2 id="domains">The MDPs</h2>\n'
        "<p>Circles are states, dots are actions with what they pay; arrows lead to where an action may end, with the probability where it "
        "is not 1. What an optimal policy plays is drawn thicker and in colour.</p>\n"
        f'<div class="graphs">\n{graphs}\n</div>\n<h3 id="knight-quest">Knight Quest</h3>\n'
        f"{guarded('Knight Quest', _knight)}\n</section>"
    )


def _graph(domain: Domain) -> str:
    env = make(domain.env)
    facts = analyse(env.mdp)
    links = ", ".join(f'<a href="#claim-{claim}">{claim}</a>' for claim in domain.claims)
    return (
        f'<figure class="graph">{mdp_graph(env, caption=plain(domain.title), policy=facts.policy)}\n'
        f"<figcaption><h3>{formula(domain.title)}</h3>\n"
        f"<p>{formula(domain.sentence)}</p>\n{_constants(facts)}\n"
        f'<p class="id"><code>{escape(domain.env)}</code> · in {links}</p></figcaption></figure>'
    )


def _knight() -> str:
    facts = analyse(make("knight-quest").mdp)
    return (
        "<p>A knight collects gold, buys a key and frees a princess, while a dragon roams about her castle: "
        f"{facts.n_states} states, {facts.n_actions} actions, at most {facts.max_support} successors of a pair.</p>\n"
        f'{_constants(facts)}\n<p class="id"><code>knight-quest</code> · in <a href="#claim-G4">G4</a></p>\n{knight_figure()}'
    )


def _constants(facts: Analysis) -> str:
    shown = {
        "gain g*": UNKNOWN if facts.gain is None else value(facts.gain),
        "span sp(h*)": UNKNOWN if facts.span is None else value(facts.span),
        "diameter D": UNKNOWN if facts.diameter is None else number(round(facts.diameter, 6)),
    }
    items = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(text)}</dd></div>" for key, text in shown.items())
    return f'<dl class="constants">{items}<div><dt>class</dt><dd>{escape(facts.classification)}</dd></div></dl>'
