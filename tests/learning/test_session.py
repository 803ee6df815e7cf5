"""A run that is stopped, written down and resumed has the bits of one that never stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from spanrl import SCAL, UCRL, Env, ProblemInfo, learn
from spanrl.agents.learner import Learner
from spanrl.agents.registry import agent_id, make_agent
from spanrl.errors import RunFileError
from spanrl.learning.optimum import find_optimum
from spanrl.learning.run import Run
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.times import measurement_times
from spanrl.learning.worlds import as_world

SEED = 3
MIXING = "scal[span_bound=0.5,p_scale=0.05,r_scale=0.05]"


class Stop(Exception):  # noqa: N818
    """The test has seen enough."""


class Careful(Learner):
    """A learner of ours that takes its decisions in Python."""

    looks = 0

    def act(self, state: int) -> int:
        self.looks += 1
        return super().act(state)

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {"looks": self.looks}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.looks = state["looks"]


class Forgetful(Learner):
    """A learner of ours with a memory that the inherited get_state does not know of."""

    def act(self, state: int) -> int:
        self.memory = [*getattr(self, "memory", []), state][-5:]
        return super().act(state)


class Foreign:
    """A learner that is none of ours: the best mean so far in each state, or any action now and then."""

    def __init__(self, info: ProblemInfo, rng: np.random.Generator) -> None:
        self.info, self.rng = info, rng
        self.paid = np.zeros((info.n_states, info.n_actions))
        self.times = np.zeros((info.n_states, info.n_actions), dtype=np.int64)
        self.now = (0, 0)

    def act(self, state: int) -> int:
        actions = self.info.action[self.info.pair_state == state]
        if self.rng.random() < 0.1:
            action = int(self.rng.choice(actions))
        else:
            action = int(actions[np.argmax(self.paid[state, actions] / np.maximum(self.times[state, actions], 1))])
        self.now = state, action
        return action

    def observe(self, reward: float, next_state: int) -> None:
        self.paid[self.now] += reward
        self.times[self.now] += 1


class Kept(Foreign):
    """The same, and it can be written down."""

    def get_state(self) -> dict[str, Any]:
        return {"paid": self.paid.copy(), "times": self.times.copy(), "word": "kept"}

    def set_state(self, state: dict[str, Any]) -> None:
        assert state["word"] == "kept"
        self.paid, self.times = state["paid"], state["times"]


@dataclass(frozen=True)
class Of:
    """An agent of a learner class."""

    kind: type

    def start(self, info: ProblemInfo, rng: Any) -> Any:
        if issubclass(self.kind, Learner):
            rules = SCAL(0.5, p_scale=0.05, r_scale=0.05).start(info, rng).rules  # MIXING
            return self.kind(rules, info, rng)
        return self.kind(info, rng)


@pytest.fixture(autouse=True)
def _many_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compiled runs come back after a few steps: they are looked at between two budgets."""
    monkeypatch.setattr("spanrl.learning.session.BUDGET", 50)


def session(env: Any, agent: Any, horizon: int, *, seed: int = SEED, points: int = 20, audit: bool = False) -> Session:
    chosen = make_agent(agent) if isinstance(agent, str) else agent
    return Session(as_world(env), chosen, agent_id(agent), horizon=horizon, seed=seed, points=points, audit=audit)


def gain_of(env: Any) -> float | None:
    return find_optimum(as_world(env).mdp).gain


def advance(one: Session, gain: float | None, looks: int) -> bytes:
    """Run until the look of that number, or to the end; return the checkpoint."""
    left = looks

    def tick(t: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Stop

    with suppress(Stop):
        one.run(gain, tick)
    return pack(one.state())


def assert_same(found: Run, run: Run) -> None:
    for name in ("t", "reward", "regret", "pseudo_regret", "span", "n_episodes"):
        assert getattr(found, name).tobytes() == getattr(run, name).tobytes(), name
    assert found.episodes.keys() == run.episodes.keys()
    for name, column in run.episodes.items():
        assert found.episodes[name].tobytes() == column.tobytes(), name
    others = ("seconds", "notes")  # notes are written by whoever runs a session
    assert {key: value for key, value in found.meta.items() if key not in others} == {
        key: value for key, value in run.meta.items() if key not in others
    }


def in_pieces(env: Any, agent: Any, horizons: list[int], draw: Callable[[], int], **options: Any) -> tuple[Run, int]:
    """Run with a stop at random looks, each piece by a fresh session; the horizon is the next of the list after each stop."""
    gain, blob, stops = gain_of(env), None, 0
    while True:
        horizon = horizons[min(stops, len(horizons) - 1)]
        one = session(env, agent, horizon, **options)
        if blob is not None:
            one.restore(unpack(blob))
        blob = advance(one, gain, draw())
        if one.state()["t"] == horizons[-1]:
            return one.result(interrupted=False), stops
        stops += 1


COMPILED = [
    ("three-state[delta=0.01]", "scal[span_bound=2]", 200_000, 40),
    ("two-state", "scal[span_bound=0.75]", 20_000, 40),
    ("two-state", MIXING, 20_000, 40),
    ("riverswim", "scal[span_bound=0.5]", 20_000, 40),
    ("knight-quest", "scal[span_bound=5,p_scale=0.05,r_scale=0.05]", 20_000, 40),
    ("riverswim", "ucrl2", 30_000, 40),
    ("three-state", "scal[span_bound=2,best_of_both=true]", 30_000, 40),
    ("three-state", "scal[span_bound=1,perturb=true]", 300, 8),
    ("riverswim", "scal[span_bound=2,warm_start=false]", 30_000, 40),
]


@pytest.mark.parametrize(("env", "agent", "horizon", "looks"), COMPILED)
def test_compiled_runs_go_on_to_the_bit(env: str, agent: str, horizon: int, looks: int) -> None:
    rng = np.random.default_rng(horizon)
    whole = learn(env, agent, horizon=horizon, seed=SEED, points=20)
    found, stops = in_pieces(env, agent, [horizon], lambda: int(rng.integers(1, looks)))
    assert stops >= 3
    assert_same(found, whole)


@pytest.mark.parametrize(("r_min", "r_max"), [(5.0, 6.0), (-7.0, -6.5), (1e6, 1e6 + 1e-3)])
def test_rewards_far_from_zero_go_on_to_the_bit(r_min: float, r_max: float) -> None:
    """A checkpoint of a run is never taken for a forged one."""
    outcomes = {(s, a): [(0.5, 0, r_min), (0.25, 1, r_max), (0.25, 2, r_max)] for s in range(3) for a in range(2)}
    env = Env.from_outcomes(outcomes, r_min=r_min, r_max=r_max)
    found, stops = in_pieces(env, UCRL(), [1000], lambda: 3)
    assert stops >= 3
    assert_same(found, learn(env, UCRL(), horizon=1000, seed=SEED, points=20))


@pytest.mark.parametrize(("env", "agent"), [("two-state", MIXING), ("riverswim", "scal[span_bound=0.5]")])
def test_the_mixing_runs_mix(env: str, agent: str) -> None:
    """Otherwise the generator of the agent would not be tested above."""
    assert not learn(env, agent, horizon=20_000, seed=SEED).episodes["deterministic"].all()


@pytest.mark.parametrize("kind", [Careful, Kept])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_runs_by_hand_go_on_to_the_bit(kind: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = learn("two-state", Of(kind), horizon=3000, seed=seed, points=20)
    found, stops = in_pieces("two-state", Of(kind), [3000], lambda: int(rng.integers(1, 12)), seed=seed)
    assert stops >= 3
    assert_same(found, whole)


def test_what_a_subclass_adds_is_carried_along() -> None:
    one = session("two-state", Of(Careful), 1000)
    blob = advance(one, 0.5, 5)
    other = session("two-state", Of(Careful), 1000)
    other.restore(unpack(blob))
    assert other.learner.looks == one.learner.looks == 6 * 64


def test_by_hand_and_compiled_are_one_run() -> None:
    by_hand, _ = in_pieces("two-state", Of(Careful), [2000], lambda: 7)
    compiled = learn("two-state", MIXING, horizon=2000, seed=SEED, points=20)
    np.testing.assert_array_equal(by_hand.reward, compiled.reward)


def test_an_audit_goes_on() -> None:
    whole = learn("three-state", "ucrl", horizon=5000, seed=SEED, points=20, audit=True)
    rng = np.random.default_rng(1)
    found, stops = in_pieces("three-state", "ucrl", [5000], lambda: int(rng.integers(1, 30)), audit=True)
    assert stops >= 2
    assert_same(found, whole)


@pytest.mark.parametrize("agent", ["ucrl", MIXING, Of(Careful), Of(Kept)])
def test_a_longer_horizon(agent: Any) -> None:
    """777 and 1777 are no measurement times of a run to 5000, so their rows must vanish."""
    assert not {777, 1777} & set(measurement_times(5000, 20).tolist())
    gain, blob = gain_of("two-state"), None
    for horizon in (777, 1777, 5000):
        one = session("two-state", agent, horizon)
        if blob is not None:
            one.restore(unpack(blob))
        blob = advance(one, gain, 10**9)
        assert one.result(interrupted=False).t[-1] == horizon
    assert_same(one.result(interrupted=False), learn("two-state", agent, horizon=5000, seed=SEED, points=20))


def test_a_longer_horizon_in_the_middle_of_an_episode() -> None:
    rng = np.random.default_rng(4)
    found, _ = in_pieces("three-state", "ucrl", [3333, 33_333, 50_000], lambda: int(rng.integers(20, 60)))
    assert_same(found, learn("three-state", "ucrl", horizon=50_000, seed=SEED, points=20))


def test_the_end_of_a_run_can_be_restored() -> None:
    """A cell that is killed between its last checkpoint and its files is resumed at its end: nothing is left to do."""
    one = session("three-state", "ucrl", 5000)
    blob = advance(one, gain_of("three-state"), 10**9)
    other = session("three-state", "ucrl", 5000)
    other.restore(unpack(blob))
    other.run(gain_of("three-state"), lambda t: None)
    assert_same(other.result(interrupted=False), one.result(interrupted=False))


def test_a_state_before_the_first_step() -> None:
    whole = learn("riverswim", "ucrl2", horizon=2000, seed=SEED, points=20)
    one = session("riverswim", "ucrl2", 2000)
    one.restore(unpack(pack(session("riverswim", "ucrl2", 2000).state())))
    one.run(gain_of("riverswim"), lambda t: None)
    assert_same(one.result(interrupted=False), whole)


def test_taking_a_state_changes_nothing() -> None:
    one = session("two-state", MIXING, 5000)
    one.run(gain_of("two-state"), lambda t: one.state() and None)
    assert_same(one.result(interrupted=False), learn("two-state", MIXING, horizon=5000, seed=SEED, points=20))


def test_seconds_go_on_growing() -> None:
    blob, kept = None, {"planning": 0.0, "simulating": 0.0, "total": 0.0}
    for looks in (30, 30, 10**9):
        one, before = session("three-state", "scal[span_bound=2]", 100_000), kept
        if blob is not None:
            one.restore(unpack(blob))
            before = one.result(interrupted=True).meta["seconds"]  # of the checkpoint
            assert before["total"] > 0
            assert all(before[name] == kept[name] for name in ("planning", "simulating"))
        blob = advance(one, gain_of("three-state"), looks)
        kept = one.result(interrupted=False).meta["seconds"]
        assert all(kept[name] > before[name] for name in before), (kept, before)


@pytest.mark.parametrize("kind", [Careful, Kept])
def test_seconds_by_hand_do_not_count_the_time_between(kind: type) -> None:
    one = session("two-state", Of(kind), 1000)
    state = unpack(advance(one, 0.5, 5)) | {"simulating": 1000.0, "total": 2000.0}
    other = session("two-state", Of(kind), 1000)
    other.restore(state)
    other.run(0.5, lambda t: None)
    seconds = other.result(interrupted=False).meta["seconds"]
    assert 1000.0 < seconds["simulating"] < 1100.0
    assert 2000.0 < seconds["total"] < 2100.0


@pytest.mark.parametrize(
    ("agent", "wanted"),
    [(UCRL(), True), (Of(Careful), True), (Of(Kept), True), (Of(Foreign), False), (Of(Forgetful), False)],
)
def test_which_learners_can_be_written_down(agent: Any, wanted: bool) -> None:
    assert session("two-state", agent, 10).is_resumable is wanted


class OwnGenerator:
    """An agent that gives our learner another generator than it was given."""

    def start(self, info: Any, rng: Any) -> Any:
        return UCRL().start(info, rng.spawn(1)[0])


class Grandchild(Kept):
    """A learner that inherits both methods from a class of the user's own."""


@pytest.mark.parametrize(("agent", "wanted"), [(OwnGenerator(), False), (Of(Grandchild), True)])
def test_generators_and_bases_of_the_user(agent: Any, wanted: bool) -> None:
    assert session("two-state", agent, 10).is_resumable is wanted


def test_a_gymnasium_environment_cannot_be_written_down_but_from_its_table() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    lake = gymnasium.make("FrozenLake-v1")
    assert session(lake, UCRL(), 10).is_resumable is True
    assert session(gymnasium.wrappers.RecordEpisodeStatistics(lake), UCRL(), 10).is_resumable is False


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 4}, "seed is 3 there and 4 here"),
        ({"env": "two-state"}, r"env is 'three-state' there and 'two-state' here"),
        ({"agent": "ucrl2"}, r"agent is 'ucrl' there and 'ucrl2' here"),
        ({"points": 10}, "points is 20 there and 10 here"),
        ({"audit": True}, "audit is False there and True here"),
        ({"horizon": 100}, "it is at step 1000, beyond the horizon 100"),
    ],
)
def test_the_state_of_another_run(changes: dict[str, Any], words: str) -> None:
    state = unpack(advance(session("three-state", "ucrl", 1000), 0.5, 10**9))
    other = {"env": "three-state", "agent": "ucrl", "horizon": 1000} | changes
    with pytest.raises(RunFileError, match=f"checkpoint: {words}"):
        session(**other).restore(state)


def _with(at: int, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        out = array.copy()
        out[at] = value
        return out

    return change


FORGED: list[tuple[str, Callable[[Any], Any], str]] = [
    ("t", lambda t: -t, "'t' must be a whole number in 0"),
    ("t", lambda t: t + 0.5, "'t' must be a whole number"),
    ("t", lambda t: t - 1, "the curve is not one of this run|the episodes are not|must hold possible values"),
    ("state", lambda s: 10**9, r"'state' must be a whole number in 0..2; got 1000000000"),
    ("sums", lambda x: ["a", 0.5], "'sums' must be a list of float, float"),
    ("tally", lambda x: x[:1], r"'tally' must have \d+ entries; got 1"),
    ("tally", lambda x: x.astype(np.float64), "'tally' must be an array of int64"),
    ("env_rng", lambda x: x | {"words": [1, 2]}, "must have four words; got 2"),
    ("env_rng", lambda x: x | {"words": [2**64] * 4}, "'words' must be a list of whole numbers"),
    ("agent_rng", lambda x: 5, "'agent_rng' must be a dict"),
    ("curve.t", _with(1, 10**12), "the curve is not one of this run"),
    ("curve.reward", lambda x: x[:-1], "'curve' must be columns of one length"),
    ("episodes.start", _with(0, -5), "the episodes are not those"),
    ("learner.t", lambda t: t + 1, "the learner is at step 351 and the run at step 350"),
    ("learner.bias", lambda x: x[:1], r"'bias' must be an array of float64 of shape \(3,\); got \('float64', \(1,\)\)"),
    ("learner.bias", _with(0, np.nan), "'bias' must hold possible values"),
    ("learner.n", _with(0, 2**62), "'n' must hold possible values"),
    ("learner.succ_ptr", _with(1, 10**9), "'succ_ptr' must hold possible values"),
    ("learner.succ_ptr", _with(1, 0), "the counts of the learner do not fit together"),
    ("learner.succ", _with(0, 10**6), "'succ' must hold possible values"),
    ("learner.succ", lambda x: x[::-1].copy(), "the counts of the learner do not fit together|cannot have happened"),
    ("learner.times", lambda x: x + 1, "the counts of the learner do not fit together"),
    ("learner.began_in", lambda x: 3, r"'began_in' must be a whole number in 0\.\.2; got 3"),
    ("learner.steps_left", lambda x: -1, "'steps_left' must be a whole number in 0"),
    ("learner.steps_left", lambda x: 2**62 + 1, "'steps_left' must be a whole number in 0"),
    ("learner.plan.pairs", _with(0, 10**9), "'plan.pairs' must hold possible values"),
    ("learner.plan.pairs", lambda x: x[:2], "'plan.pairs' must be an array of int64"),
    ("learner.plan.weight", _with(0, 1.5), "'plan.weight' must hold possible values"),
    ("learner.plan.left", _with(0, 2**40), "'plan.left' must hold possible values"),
    ("learner.plan.left", _with(0, -1), "'plan.left' must hold possible values"),
    ("learner.plan.allowed", _with(0, 2**62 + 1), "'plan.allowed' must hold possible values"),
    ("learner.plan.allowed", _with(0, -1), "'plan.allowed' must hold possible values"),
    ("learner.plan.steps", lambda x: -1, "'plan.steps' must be a whole number in 0"),
    ("learner.plan.mixes", lambda x: 7, "'plan.mixes' must be true or false; got 7"),
    ("learner.record", lambda x: x[:3], "'record' must be a list of int, float"),
]


@pytest.mark.parametrize(("key", "change", "words"), FORGED)
def test_a_forged_state_is_refused_before_compiled_code_sees_it(
    key: str, change: Callable[[Any], Any], words: str
) -> None:
    state = unpack(advance(session("three-state", "ucrl", 1000), 0.5, 6))
    session("three-state", "ucrl", 1000).restore(state)
    with pytest.raises(RunFileError, match=words):
        session("three-state", "ucrl", 1000).restore(state | {key: change(state[key])})
    del state[key]
    with pytest.raises(RunFileError, match=rf"'{key.removeprefix('learner.')}' is missing|columns of one length"):
        session("three-state", "ucrl", 1000).restore(state)


class TestTheHorizonThatIsRead:
    """An agent that asks for the horizon cannot be resumed when it grows."""

    @pytest.mark.parametrize("agent", ["scal[span_bound=2]", "ucrl", "ucrl2"])
    def test_ours_do_not_ask(self, agent: str) -> None:
        one = session("three-state", agent, 2000)
        assert one.info.horizon_was_read is False
        assert unpack(advance(one, 0.5, 10**9))["horizon_was_read"] is False

    def test_one_that_asks_is_found_out(self) -> None:
        one = session("three-state", "ucrl", 2000)
        assert one.info.horizon == 2000
        assert one.info.horizon_was_read is True
        assert one.state()["horizon_was_read"] is True

    def test_it_stays_known_over_a_resume(self) -> None:
        one = session("three-state", "ucrl", 2000)
        assert one.info.horizon == 2000
        other = session("three-state", "ucrl", 2000)
        other.restore(unpack(advance(one, 0.5, 5)))
        assert other.state()["horizon_was_read"] is True

    def test_a_warning_about_it_does_not_count(self) -> None:
        with pytest.warns(UserWarning, match="perturb=True"):
            one = session("two-state", "scal[span_bound=1,perturb=true]", 20_000)
        assert one.info.horizon_was_read is False

    @pytest.mark.parametrize("horizon", [None, 5])
    def test_making_the_info_does_not_count(self, horizon: int | None) -> None:
        info = ProblemInfo(3, 2, horizon=horizon)
        assert info.horizon_was_read is False
        assert info.horizon == horizon
        assert info.horizon_was_read is True

    def test_each_info_remembers_for_itself(self) -> None:
        first, second = ProblemInfo(3, 2, horizon=5), ProblemInfo(3, 2, horizon=6)
        assert (first.horizon, second.horizon_was_read) == (5, False)


def test_an_environment_object_goes_on() -> None:
    env = Env.from_outcomes({(0, 0): [(0.5, 0, 0.0), (0.5, 1, 1.0)], (1, 0): [(1.0, 0, 0.5)], (1, 1): [(1.0, 1, 0.2)]})
    whole = learn(env, UCRL(), horizon=3000, seed=SEED, points=20)
    rng = np.random.default_rng(0)
    found, stops = in_pieces(env, UCRL(), [3000], lambda: int(rng.integers(1, 20)))
    assert stops >= 2
    assert_same(found, whole)
