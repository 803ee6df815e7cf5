"""Learning: total time against the pure compiled simulation of as many steps, steps per second, and what a large problem takes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from time import perf_counter
from typing import Any

from harness import REPEATS, Row, interleaved, ratio_row, value_row

from spanrl import SCAL, UCRL, ProblemInfo, learn, make, simulate, solve, streams

_GIB = 2**30


def three_state_rows(smoke: bool) -> list[Row]:
    """The paper's three-state domain on one core."""
    T = 10**5 if smoke else 25 * 10**6
    group = f"Three-state, T = {T:g}: total over pure simulation"
    agents = {"SCAL c = 5": (SCAL(5.0), 1.5, {}), "UCRL": (UCRL(), None, {})}
    return [*_over_pure("three-state[delta=0.005]", T, agents, group, 2 if smoke else REPEATS, 1), by_hand(smoke)]


def knight_quest_rows(smoke: bool) -> list[Row]:
    """The paper's largest domain, at the paper's horizon; no warm-up, since a run takes seconds."""
    T, alpha = 10**4 if smoke else 4 * 10**8, {"p_scale": 0.05, "r_scale": 0.05}
    group = f"Knight Quest, α = 0.05, T = {T:g}: total over pure simulation"
    label = "SCAL on Knight Quest, T = 4·10⁸: total over pure simulation"
    agents = {"SCAL c = 5": (SCAL(5.0, **alpha), 1.3, {"readme": label}), "UCRL": (UCRL(**alpha), 2.0, {})}
    return _over_pure("knight-quest", T, agents, group, 2 if smoke else REPEATS, 0)


def _over_pure(
    name: str,
    T: int,
    agents: dict[str, tuple[Any, float | None, dict[str, str]]],
    group: str,
    repeats: int,
    warm_up: int,
) -> list[Row]:
    env, last = make(name), {}
    policy = solve(env.mdp).policy

    def learning(case: str) -> None:
        last[case] = learn(env, agents[case][0], horizon=T, seed=0)

    def pure() -> None:
        simulate(env, policy, horizon=T, seed=0)

    runs = {case: (lambda case=case: learning(case)) for case in agents}
    times = interleaved({"pure": pure, **runs}, repeats, warm_up)
    rows = [value_row(group, "pure simulation", [s / T * 1e9 for s in times["pure"].seconds], "ns per step")]
    for case, (_, target, data) in agents.items():
        run, spent = last[case], last[case].meta["seconds"]
        note = (
            f"{T / times[case].median / 1e6:.3g} million steps/s; {run.n_episodes[-1]:,} episodes, "
            f"{run.episodes['sweeps'].sum():,} sweeps, planning {spent['planning']:.2g} s"
        )
        rows.append(ratio_row(group, case, times[case], times["pure"], target=target, note=note, data=data))
    return rows


def by_hand(smoke: bool) -> Row:
    """What act and observe cost, without the environment: the steps are played first, then only told to learners."""
    T = 10**4 if smoke else 5 * 10**5
    env = make("three-state", delta=0.005)
    info, (rng, _) = ProblemInfo.from_mdp(env.mdp), streams(0)
    play, state, log = SCAL(5.0).start(info, streams(0)[1]), 0, []
    for _ in range(T):
        reward, succ = env.step(state, play.act(state), rng)
        play.observe(reward, succ)
        log.append((state, reward, succ))
        state = succ

    def told() -> float:
        learner = SCAL(5.0).start(info, streams(0)[1])
        begun = perf_counter()
        for state, reward, succ in log:
            learner.act(state)
            learner.observe(reward, succ)
        return perf_counter() - begun

    taken = interleaved({"told": told}, 1 if smoke else REPEATS, 0)["told"].seconds
    return value_row("By hand", "act + observe, with planning", [s / T * 1e6 for s in taken], "µs a step", target=5.0)


def accelerator_rows(smoke: bool) -> list[Row]:
    """What a warm start, with frozen actions between full sweeps, gains: planning time with it over planning time without."""
    T, env = 10**4 if smoke else 10**6, make("knight-quest")

    def planning(warm: bool) -> float:
        agent = SCAL(5.0, p_scale=0.05, r_scale=0.05, warm_start=warm)
        return float(learn(env, agent, horizon=T, seed=0).meta["seconds"]["planning"])

    runs = {"warm": lambda: planning(True), "cold": lambda: planning(False)}
    times = interleaved(runs, 1 if smoke else REPEATS, 0)
    group, case = f"Warm start in learning, T = {T:g}", "Knight Quest, SCAL c = 5"
    note = f"planning {times['warm'].median:.2g} s, without {times['cold'].median:.2g} s"
    return [ratio_row(group, case, times["warm"], times["cold"], target=1 / 1.3, note=note)]


def large_rows(smoke: bool) -> list[Row]:
    """A Garnet with 4·10⁵ pairs, in a process that may not take more than 4 GiB of addresses."""
    S, T = (1000, 10**4) if smoke else (10**5, 2 * 10**6)
    code = textwrap.dedent(f"""
        import json, sys
        from time import perf_counter
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from memory import peak_memory
        from spanrl import SCAL, Env, learn
        from spanrl.bench import garnet
        env = Env.from_mdp(garnet({S}, 4, 5), "bernoulli")
        learn(env, SCAL(2.0), horizon=10, seed=0, gain=1.0)
        begun = perf_counter()
        run = learn(env, SCAL(2.0), horizon={T}, seed=0, gain=1.0)
        print(json.dumps([perf_counter() - begun, peak_memory(),
                          int(run.n_episodes[-1]), run.meta["seconds"]["planning"]]))
    """)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 * _GIB, 4 * _GIB)),
    )
    seconds, memory, episodes, planning = json.loads(done.stdout)
    group = f"Garnet S = {S:g}, A = 4, Γ = 5: SCAL, T = {T:g}"
    return [
        Row(group, "time", seconds, "s", note=f"one run; {episodes:,} episodes, planning {planning:.1f} s"),
        Row(
            group, "peak memory", memory / _GIB, "GiB", 1.0,
            data={"readme": "Peak memory of learning with 10⁵ states, 4·10⁵ pairs"},
        ),
    ]  # fmt: skip
