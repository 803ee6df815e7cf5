"""UCRL2, UCRL2B, UCRL3 and KL-UCRL: UCRL with their bounds, decision by decision."""

from __future__ import annotations

import pytest

from spanrl import KLUCRL, SCAL, TUCRL, UCRL, UCRL2, UCRL2B, UCRL3, learn, make
from spanrl.agents.tucrl import TRUNCATED
from spanrl.confidence.bounds import BOUNDS
from spanrl.errors import OptionError
from ways import Kept, curves

ALIASES = {"ucrl2b": UCRL2B, "ucrl3": UCRL3, "kl": KLUCRL}
ALL = {"hoeffding": UCRL2} | ALIASES


@pytest.mark.parametrize("bounds", ALL)
@pytest.mark.parametrize("options", [{}, {"delta": 0.3, "warm_start": False}], ids=["defaults", "options"])
def test_the_same_decisions(bounds, options):
    alias, ucrl = Kept(ALL[bounds](**options)), Kept(UCRL(bounds=bounds, **options))
    env = make("riverswim[variant=osband]")
    ours, theirs = (learn(env, agent, horizon=20_000, seed=4) for agent in (alias, ucrl))
    assert curves(ours) == curves(theirs)
    assert alias.learners[0].policy.probs.tobytes() == ucrl.learners[0].policy.probs.tobytes()


def test_they_are_not_each_other():
    runs = [curves(learn("riverswim[variant=osband]", kind(), horizon=20_000, seed=4)) for kind in ALIASES.values()]
    assert runs[0] != runs[1] != runs[2] != runs[0]


@pytest.mark.parametrize("kind", ALIASES.values())
def test_options_are_checked(kind):
    for wrong in ({"delta": "rsqrt"}, {"delta": 2.0}, {"warm_start": "no"}):
        with pytest.raises(OptionError, match=rf"^{kind.__name__}: {next(iter(wrong))} must"):
            kind(**wrong)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_optimistic_agents_take_any_bound(bounds):
    """SCAL and UCRL take all of them, TUCRL all boxes."""
    kinds = [UCRL, SCAL, TUCRL] if bounds in TRUNCATED else [UCRL, SCAL]
    agents = [kind(**{"span_bound": 2.0} if kind is SCAL else {}, bounds=bounds) for kind in kinds]
    runs = [learn("three-state", agent, horizon=2000, seed=1) for agent in agents]
    assert all(run.n_episodes[-1] > 5 for run in runs)
    assert set(BOUNDS) - set(TRUNCATED) == {"kl", "hoeffding"}
