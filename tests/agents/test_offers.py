"""What a learner offers to those who run it: nothing is inherited, and what is not offered is done step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from loop_samples import Kept, curves, random_env

from spanrl import SCAL, UCRL, UCRL2, ProblemInfo, learn
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.offers import EPISODES, HOOK, RESUME, SETS, STEPS, offers
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.errors import OptionError
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.worlds import as_world

INFO = ProblemInfo(3, 2)
AGENT = SCAL(0.4, p_scale=0.002, r_scale=0.002)
ENV = random_env(1)
HORIZON = 1000


class Silent(Learner):
    """A subclass that says nothing."""


class SilentActs(Learner):
    """A subclass that says nothing and does something of its own."""

    acts = 0

    def act(self, state: int) -> int:
        self.acts += 1
        return super().act(state)


class Written(SilentActs):
    """A subclass that says nothing and can be written down."""

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {"acts": self.acts}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.acts = state["acts"]


class Compiled(Learner):
    """A subclass that says that all is as before."""

    offers = frozenset({EPISODES, HOOK, RESUME, SETS})


class Hooked(Learner):
    """A subclass that begins episodes in a way of its own."""

    offers = frozenset({HOOK})
    begun = 0

    def begin_episode(self, batch: Any, state: int) -> None:
        self.begun += 1
        super().begin_episode(batch, state)


class Child(Compiled):
    """A subclass of one that has said something."""


class Plain:
    """A learner that is none of ours."""

    def __init__(self, info: ProblemInfo, rng: np.random.Generator) -> None:
        self.info, self.rng = info, rng

    def act(self, state: int) -> int:
        return int(self.rng.choice(self.info.action[self.info.pair_state == state]))

    def observe(self, reward: float, next_state: int) -> None:
        pass


@dataclass(frozen=True)
class Of:
    """An agent of a learner class."""

    kind: type
    learners: list[Any] = field(default_factory=list, compare=False)
    told: list[Any] = field(default_factory=list, compare=False)
    hooked: bool = False

    def start(self, info: ProblemInfo, rng: Any) -> Any:
        learner = self.kind(AGENT.rules, info, rng) if issubclass(self.kind, Learner) else self.kind(info, rng)
        self.learners.append(learner)
        if self.hooked:
            learner.on_episode.append(lambda one: self.told.append(one.episode.start))
        return learner


def session(agent: Any, horizon: int = HORIZON, env: Any = ENV, **options: Any) -> Session:
    return Session(as_world(env), agent, "some agent", horizon=horizon, seed=1, points=30, **options)


class TestWhatIsOffered:
    def test_by_our_learners(self):
        for agent in (AGENT, UCRL(), UCRL2()):
            assert offers(agent.start(INFO, 0)) == {EPISODES, HOOK, RESUME, SETS}

    @pytest.mark.parametrize("options", [{"perturb": True}, {"best_of_both": True}])
    def test_plans_that_python_makes(self, options):
        assert offers(SCAL(1.0, **options).start(INFO, 0)) == {HOOK, RESUME, SETS}

    def test_with_a_hook_python_begins_the_episodes(self):
        learner = UCRL().start(INFO, 0)
        learner.on_episode.append(print)
        assert offers(learner) == {HOOK, RESUME, SETS}

    def test_with_another_generator(self):
        assert EPISODES not in offers(UCRL().start(INFO, np.random.default_rng(0)))

    @pytest.mark.parametrize("kind", [Silent, SilentActs, Written, Child, Plain])
    def test_nothing_is_inherited(self, kind):
        assert offers(Of(kind).start(INFO, np.random.default_rng(0))) == frozenset()

    @pytest.mark.parametrize("kind", [Compiled, Hooked])
    def test_what_a_class_says_counts(self, kind):
        assert offers(Of(kind).start(INFO, np.random.default_rng(0))) == kind.offers

    def test_what_a_single_learner_says_counts(self):
        learner = Plain(INFO, np.random.default_rng(0))
        learner.offers = [STEPS]
        assert offers(learner) == {STEPS}

    def test_things_without_attributes_offer_nothing(self):
        assert offers(5) == offers(object()) == frozenset()


class TestHowALearnerIsRun:
    @pytest.mark.parametrize(
        ("kind", "way"),
        [
            (Silent, "_run_by_hand"), (SilentActs, "_run_by_hand"), (Written, "_run_by_hand"), (Child, "_run_by_hand"),
            (Plain, "_run_by_hand"), (Compiled, "_run_compiled"), (Hooked, "_run_watched"), (Learner, "_run_compiled"),
        ],
    )  # fmt: skip
    def test_as_it_says(self, kind, way, monkeypatch):
        ways = []
        for name in ("_run_by_hand", "_run_compiled", "_run_watched", "_run_steps"):
            run = getattr(Session, name)

            def told(self, *args, name=name, run=run):
                ways.append(name)
                run(self, *args)

            monkeypatch.setattr(Session, name, told)
        one = session(Of(kind))
        one.run(0.5, lambda t: None)
        assert ways == [way]
        assert one.is_compiled == (way != "_run_by_hand")

    @pytest.mark.parametrize("kind", [Silent, SilentActs, Written, Child, Compiled, Hooked])
    def test_the_result_is_the_same(self, kind):
        """Sums of whole rewards are exact, so that all ways of adding them up agree; episodes are recorded in all of them."""
        agent = Of(kind)
        run, wanted = (learn(ENV, one, horizon=HORIZON, seed=1, points=30) for one in (agent, AGENT))
        np.testing.assert_allclose(run.pseudo_regret, wanted.pseudo_regret, rtol=0, atol=1e-9)
        for name in ("reward", "span", "n_episodes"):
            assert getattr(run, name).tobytes() == getattr(wanted, name).tobytes(), name
        for name, column in wanted.episodes.items():
            assert run.episodes[name].tobytes() == column.tobytes(), name
        (learner,) = agent.learners
        assert getattr(learner, "acts", HORIZON) == HORIZON
        assert getattr(learner, "begun", learner.n_episodes) == learner.n_episodes == wanted.n_episodes[-1]

    @pytest.mark.parametrize("kind", [Learner, Silent, SilentActs, Hooked])
    def test_hooks_are_called_once_per_episode(self, kind):
        """Watched, and by hand."""
        agent = Of(kind, hooked=True)
        run = learn(ENV, agent, horizon=HORIZON, seed=1)
        assert agent.told == run.episodes["start"].tolist()
        assert len(agent.told) == agent.learners[0].n_episodes > 10

    def test_hooks_of_an_audit(self):
        agent = Of(Learner, hooked=True)
        run = learn(ENV, agent, horizon=HORIZON, seed=1, audit=True)
        assert agent.told == run.episodes["start"].tolist()
        assert run.episodes["contains"].size == len(agent.told) > 10

    def test_hooks_are_called_after_the_plan(self):
        seen = []
        agent = Kept(AGENT)

        @dataclass(frozen=True)
        class Told:
            def start(self, info, rng):
                learner = agent.start(info, rng)
                learner.on_episode.append(lambda one: seen.append((one.t, one.episode.start, one.plan.sweeps)))
                return learner

        run = learn(ENV, Told(), horizon=HORIZON, seed=1)
        assert [start for _, start, _ in seen] == [t + 1 for t, _, _ in seen] == run.episodes["start"].tolist()
        assert [sweeps for _, _, sweeps in seen] == run.episodes["sweeps"].tolist()
        assert len(agent.learners[0].on_episode) == 1, "the recorder has left"

    def test_a_hook_is_removed_when_the_run_is_stopped(self):
        class Stop(Exception):  # noqa: N818
            pass

        def stop(t):
            raise Stop

        one = session(Of(Hooked))
        with pytest.raises(Stop):
            one.run(0.5, stop)
        assert one.learner.on_episode == []

    def test_a_plain_agent_has_no_episodes(self):
        run = learn(ENV, Of(Plain), horizon=HORIZON, seed=1)
        assert run.t[-1] == HORIZON
        assert np.isnan(run.span).all()
        assert not run.n_episodes.any()
        assert all(column.size == 0 for column in run.episodes.values())


class TestCheckpoints:
    @pytest.mark.parametrize(
        ("kind", "wanted"),
        [
            (Learner, True), (Compiled, True), (Written, True), (Silent, False), (SilentActs, False), (Hooked, False),
            (Child, False), (Plain, False),
        ],
    )  # fmt: skip
    def test_who_can_be_written_down(self, kind, wanted):
        assert session(Of(kind)).is_resumable is wanted

    @pytest.mark.parametrize("kind", [Compiled, Written])
    def test_they_resume_with_the_same_bits(self, kind, monkeypatch):
        monkeypatch.setattr("spanrl.learning.session.BUDGET", 50)
        whole = session(Of(kind))
        whole.run(0.5, lambda t: None)

        class Stop(Exception):  # noqa: N818
            pass

        one, looks = session(Of(kind)), []

        def stop(t):
            looks.append(t)
            if len(looks) == 5:
                raise Stop

        with pytest.raises(Stop):
            one.run(0.5, stop)
        other = session(Of(kind))
        other.restore(unpack(pack(one.state())))
        other.run(0.5, lambda t: None)
        assert curves(other.result(interrupted=False)) == curves(whole.result(interrupted=False))
        assert getattr(other.learner, "acts", HORIZON) == HORIZON


class TestAudits:
    @pytest.mark.parametrize("kind", [Silent, Hooked, Child, Plain])
    def test_agents_without_sets_are_refused(self, kind):
        with pytest.raises(
            OptionError,
            match=r"learn: audit needs the true model and an agent with confidence sets\. Leave audit out\.",
        ):
            learn(ENV, Of(kind), horizon=10, seed=0, audit=True)

    @pytest.mark.parametrize("kind", [Learner, Compiled])
    def test_others_are_audited(self, kind):
        run, wanted = (learn(ENV, one, horizon=HORIZON, seed=1, audit=True) for one in (Of(kind), AGENT))
        assert curves(run) == curves(wanted)
        assert len(run.episodes) > len(learn(ENV, AGENT, horizon=10, seed=1).episodes)


def test_rules_have_the_usual_parts():
    rules = Rules(BernsteinBox())
    learner = Learner(rules, INFO, np.random.default_rng(0))
    assert learner.rules is rules
    assert learner.on_episode == []
    assert learner.steps_left == 0
