"""A run that is stopped, written down and gone on with has the bits of one that never stopped."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl import SCAL, UCRL, Env, ProblemInfo, learn
from spanrl.agents.learner import Learner
from spanrl.agents.registry import agent_id, make_agent
from spanrl.errors import InputError, RunFileError
from spanrl.learning.learn import optimal_gain
from spanrl.learning.run import Run
from spanrl.learning.session import Session
from spanrl.learning.snapshot import columns, pack, read_head, unpack
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


def session(env: Any, agent: Any, horizon: int, *, seed: int = SEED, points: int = 20, audit: bool = False) -> Session:
    chosen = make_agent(agent) if isinstance(agent, str) else agent
    return Session(as_world(env), chosen, agent_id(agent), horizon=horizon, seed=seed, points=points, audit=audit)


def gain_of(env: Any) -> float | None:
    return optimal_gain(as_world(env).mdp)


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
    assert {key: value for key, value in found.meta.items() if key != "seconds"} == {
        key: value for key, value in run.meta.items() if key != "seconds"
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
    """A cell that is killed between its last checkpoint and its files goes on from its end: nothing is left to do."""
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
    blob, before = None, {"planning": 0.0, "simulating": 0.0, "total": 0.0}
    for looks in (30, 30, 10**9):
        one = session("three-state", "scal[span_bound=2]", 100_000)
        if blob is not None:
            one.restore(unpack(blob))
        blob = advance(one, gain_of("three-state"), looks)
        seconds = one.result(interrupted=False).meta["seconds"]
        assert all(seconds[name] > before[name] for name in before), (seconds, before)
        before = seconds


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


@pytest.mark.parametrize("value", [{0: 1}, (1, 2), [{"a": {1: 2}}], [np.zeros(2)]])
def test_what_json_would_change_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="dicts with text as keys; got"):
        pack({"value": value})


def test_a_gymnasium_environment_cannot_be_written_down() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    assert session(gymnasium.make("FrozenLake-v1"), UCRL(), 10).is_resumable is False


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


class TestTheHorizonThatIsRead:
    """An agent that asks for the horizon cannot be gone on with when it grows."""

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


# --- checkpoints as bytes ----------------------------------------------------------------------------------------------

STATE: dict[str, Any] = {
    "t": 12345,
    "word": "ünï [x=1]\nnew line",
    "numbers": [1, -2.5, 0.1 + 0.2, inf, -inf, -0.0, 5e-324],
    "words": [2**64 - 1, 2**63 + 1, 0],
    "nested": {"rest": {"has_uint32": 0}, "list": [[1], []]},
    "nothing": None,
    "yes": True,
    "floats": np.array([0.1, nan, inf, -inf, -0.0, 5e-324]),
    "integers": np.array([[1, -(2**63)], [2**63 - 1, 0]]),
    "large": np.array([2**63 + 1, 2**64 - 1], dtype=np.uint64),
    "flags": np.array([True, False]),
    "small": np.array([1, 2], dtype=np.int8),
    "empty": np.zeros(0),
    "empty table": np.zeros((0, 3), dtype=np.int64),
    "scalar": np.array(2.5),
    "texts": np.array(["a", "ünï"]),
}


def assert_same_state(found: dict[str, Any], state: dict[str, Any]) -> None:
    assert found.keys() == state.keys()
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
            assert found[name].tobytes() == value.tobytes(), name
        else:
            assert repr(found[name]) == repr(value), name


def test_round_trip_to_the_bit() -> None:
    assert_same_state(unpack(pack(STATE)), STATE)


def test_nan_outside_of_arrays() -> None:
    found = unpack(pack({"episode": [nan, 3]}))["episode"]
    assert np.isnan(found[0])
    assert found[1] == 3


def test_numbers_of_numpy_become_plain_ones() -> None:
    state = {"a": np.float64(0.1), "b": np.int64(-3), "c": np.uint64(2**64 - 1), "d": np.bool_(True)}
    found = unpack(pack(state))
    assert found == {"a": 0.1, "b": -3, "c": 2**64 - 1, "d": True}
    assert [type(value) for value in found.values()] == [float, int, int, bool]


def test_an_empty_state() -> None:
    assert unpack(pack({})) == {}


@given(
    st.dictionaries(
        st.text("abcdefgh.", min_size=1, max_size=8),
        st.integers() | st.floats(allow_nan=False) | st.text() | st.none() | st.lists(st.floats(allow_nan=False)),
    ),
    st.lists(st.floats(), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_any_state_comes_back(plain: dict[str, Any], numbers: list[float]) -> None:
    state = {**plain, "array": np.array(numbers, dtype=np.float64)}
    assert_same_state(unpack(pack(state)), state)


def test_equal_states_give_equal_bytes() -> None:
    assert pack(STATE) == pack(dict(STATE))


@pytest.mark.parametrize("flip", [1, 16, 128])
def test_every_flipped_byte_is_told(flip: int) -> None:
    data = pack(STATE)
    places = {*range(120), *np.random.default_rng(flip).integers(0, len(data), 200).tolist(), len(data) - 1}
    for place in places:
        changed = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
        with pytest.raises(RunFileError, match=r"^here: (this is no checkpoint of version 1|the checkpoint is cut)"):
            unpack(changed, "here")


def test_every_cut_is_told() -> None:
    data = pack(STATE)
    for length in {*range(120), *np.random.default_rng(0).integers(0, len(data), 200).tolist(), len(data) - 1}:
        with pytest.raises(RunFileError, match=r"no checkpoint of version 1|the checkpoint is cut or was changed"):
            unpack(data[:length])


def test_something_behind_the_end_is_told() -> None:
    with pytest.raises(RunFileError, match="cut or was changed"):
        unpack(pack(STATE) + b"\n")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"PK\x03\x04", b"spanrl-checkpoint 2\nabc\n{}\n", b"\xff" * 500])
def test_something_else(data: bytes) -> None:
    with pytest.raises(RunFileError, match=r"^checkpoint: this is no checkpoint of version 1"):
        unpack(data)


def sealed(content: bytes) -> bytes:
    return b"spanrl-checkpoint 1\n" + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def objects() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, odd=np.array([{}], dtype=object))  # numpy pickles it; reading must refuse
    return stream.getvalue()


@pytest.mark.parametrize("arrays", [b"", b"no archive", objects()], ids=["nothing", "text", "pickle"])
def test_a_right_seal_around_something_else(arrays: bytes) -> None:
    with pytest.raises(RunFileError, match=r"^checkpoint: the checkpoint cannot be read \("):
        unpack(sealed(b'{"t": 1}\n' + arrays))


@pytest.mark.parametrize("line", [b"", b"{", b"\xff", b"[1, 2]", b"5"])
def test_a_right_seal_around_what_is_no_json_object(line: bytes) -> None:
    stream = io.BytesIO()
    np.savez(stream, a=np.zeros(1))
    with pytest.raises(RunFileError, match=r"^checkpoint: the checkpoint cannot be read \("):
        unpack(sealed(line + b"\n" + stream.getvalue()))


def test_arrays_of_objects_are_refused() -> None:
    with pytest.raises(InputError, match=r"'odd' must be an array of numbers; got one of objects"):
        pack({"t": 1, "odd": np.array([None, "a"], dtype=object)})


@pytest.mark.parametrize(
    ("value", "kind"), [({1, 2}, "set"), (b"bytes", "bytes"), (1 + 2j, "complex"), (object(), "object")]
)
def test_odd_values_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(InputError, match=rf"must hold numbers, text, arrays, lists, .*; got {kind}\."):
        pack({"t": 1, "odd": value})


@pytest.mark.parametrize("state", [{"odd": [np.zeros(2)]}, {"odd": {"inner": np.zeros(2)}}])
def test_arrays_inside_of_lists_are_refused(state: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="got ndarray"):
        pack(state)


def test_the_head_alone(tmp_path: Path) -> None:
    data = pack(STATE)
    (tmp_path / "a.ckpt").write_bytes(data)
    head = read_head(tmp_path / "a.ckpt")
    assert head["t"] == 12345
    assert head.keys() == {name for name, value in STATE.items() if not isinstance(value, np.ndarray)}
    (tmp_path / "a.ckpt").write_bytes(data[:-100])
    assert read_head(tmp_path / "a.ckpt") == head, "arrays are not read"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no checkpoint of version 1"),
        (b"something else\n", "is no checkpoint of version 1"),
        (b"spanrl-checkpoint 1\n", "is cut or was changed"),
        (pack(STATE)[:100], "is cut or was changed"),
    ],
)
def test_a_head_that_is_none(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.ckpt").write_bytes(data)
    with pytest.raises(RunFileError, match=rf"a\.ckpt {words}"):
        read_head(tmp_path / "a.ckpt")


def test_nothing_is_pickled() -> None:
    line = pack(STATE).split(b"\n", 3)[2]
    assert json.loads(line)["word"] == STATE["word"]
    assert b"pickle" not in pack(STATE)


def test_columns() -> None:
    kinds: dict[str, type[np.generic]] = {"t": np.int64, "x": np.float64, "flag": np.bool_}
    found = columns([(1, 0.5, True), (2, nan, False)], kinds)
    assert {name: column.tolist()[0] for name, column in found.items()} == {"t": 1, "x": 0.5, "flag": True}
    assert {name: column.dtype for name, column in found.items()} == {name: np.dtype(k) for name, k in kinds.items()}
    assert {name: column.shape for name, column in columns([], kinds).items()} == dict.fromkeys(kinds, (0,))
