"""Learning: total time against the pure compiled simulation of as many steps, steps a second, and what a large problem takes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from time import perf_counter

from harness import Row, interleaved

from spanrl import SCAL, UCRL, ProblemInfo, learn, make, simulate, solve, streams

_GIB = 2**30


def three_state_rows(smoke: bool) -> list[Row]:
    """The paper's three-state domain on one core."""
    T = 10**5 if smoke else 25 * 10**6
    env = make("three-state", delta=0.005)
    policy = solve(env.mdp).policy
    candidates = {
        "pure": lambda: simulate(env, policy, horizon=T, seed=0),
        "scal": lambda: learn(env, SCAL(5.0), horizon=T, seed=0),
        "ucrl": lambda: learn(env, UCRL(), horizon=T, seed=0),
    }
    seconds = interleaved(candidates, 2 if smoke else 5)
    group = f"Three-state, T = {T:g}: total over pure simulation"
    rows = [
        Row(group, name, seconds[key] / seconds["pure"], "×", target, f"{T / seconds[key] / 1e6:.0f} million steps/s")
        for key, name, target in (("scal", "SCAL c = 5", 1.5), ("ucrl", "UCRL", None))
    ]
    return [*rows, Row(group, "pure simulation", seconds["pure"] / T * 1e9, "ns a step"), _by_hand(smoke)]


def _by_hand(smoke: bool) -> Row:
    """What act and observe cost, without the environment: the steps are played twice, the second time without a learner."""
    T = 10**4 if smoke else 10**6
    env = make("three-state", delta=0.005)
    learner = SCAL(5.0).start(ProblemInfo.from_mdp(env.mdp), streams(0)[1])
    rng, state, log = streams(0)[0], 0, []
    play = SCAL(5.0).start(ProblemInfo.from_mdp(env.mdp), streams(0)[1])
    for _ in range(T):
        action = play.act(state)
        reward, succ = env.step(state, action, rng)
        play.observe(reward, succ)
        log.append((state, reward, succ))
        state = succ
    begun = perf_counter()
    for state, reward, succ in log:
        learner.act(state)
        learner.observe(reward, succ)
    return Row("By hand", "act + observe, with planning", (perf_counter() - begun) / T * 1e6, "µs a step", 5.0)


def knight_quest_rows(smoke: bool) -> list[Row]:
    """The paper's largest domain, at the paper's horizon."""
    env = make("knight-quest")
    policy, rows = solve(env.mdp).policy, []
    agents = (
        ("SCAL c = 5", SCAL(5.0, p_scale=0.05, r_scale=0.05), 1.6),
        ("UCRL", UCRL(p_scale=0.05, r_scale=0.05), 2.0),
    )
    for T in (10**4,) if smoke else (10**7, 4 * 10**8):
        begun = perf_counter()
        simulate(env, policy, horizon=T, seed=0)
        pure = perf_counter() - begun
        group = f"Knight Quest, α = 0.05, T = {T:g}: total over pure simulation ({pure / T * 1e9:.1f} ns a step)"
        for name, agent, target in agents:
            begun = perf_counter()
            run = learn(env, agent, horizon=T, seed=0)
            total, spent = perf_counter() - begun, run.meta["seconds"]
            note = (
                f"{T / total / 1e6:.1f} million steps/s; {run.n_episodes[-1]:,} episodes, {run.episodes['sweeps'].sum():,} sweeps, "
                f"planning {spent['planning']:.2f} s, simulating {spent['simulating']:.2f} s"
            )
            rows.append(Row(group, name, total / pure, "×", target if T > 10**8 else None, note))
    return rows


def accelerator_rows(smoke: bool) -> list[Row]:
    """What a warm start, with frozen actions between full sweeps, gains: planning time with it over planning time without."""
    T, env = 10**4 if smoke else 10**6, make("knight-quest")
    options = {"p_scale": 0.05, "r_scale": 0.05}
    spent = {
        warm: learn(env, SCAL(5.0, **options, warm_start=warm), horizon=T, seed=0).meta["seconds"]["planning"]
        for warm in (True, False)
    }
    return [
        Row(f"Warm start in learning, T = {T:g}", "Knight Quest, SCAL c = 5", spent[True] / spent[False], "×", 1 / 1.3)
    ]


def large_rows(smoke: bool) -> list[Row]:
    """A Garnet with 4·10⁵ pairs, in a process that may not take more than 4 GiB."""
    S, T = (1000, 10**4) if smoke else (10**5, 10**7)
    code = textwrap.dedent(f"""
        import json, resource, sys
        from time import perf_counter
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from models import garnet
        from spanrl import SCAL, Env, learn
        env = Env.from_mdp(garnet({S}, 4, 5), "bernoulli")
        learn(env, SCAL(2.0), horizon=10, seed=0, gain=1.0)
        begun = perf_counter()
        run = learn(env, SCAL(2.0), horizon={T}, seed=0, gain=1.0)
        print(json.dumps([perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
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
    group = f"Garnet S = {S:g}, A = 4, Γ = 5: SCAL, T = {T:g}, under a limit of 4 GiB"
    return [
        Row(group, "time", seconds / 60, "minutes", 10.0, f"{episodes:,} episodes, planning {planning:.1f} s"),
        Row(group, "memory", memory / _GIB, "GiB", 4.0),
    ]
