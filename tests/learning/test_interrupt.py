"""Ctrl-C from outside, in the middle of a run that would take hours: what was done so far comes back at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

if sys.platform == "win32":
    pytest.skip("signals as on POSIX", allow_module_level=True)

MOST = 2.0
"""Seconds; the promise is half a second, and a busy machine may need more."""


HEAD = """
import json, time
import numpy as np
from spanrl import learn
"""
TAIL = """
print("ready", flush=True)
run = learn(env(), agent, horizon=horizon, seed=0, progress=progress, gain=gain)
back = time.monotonic()
print(json.dumps({
    "back": back, "t": int(run.t[-1]), "interrupted": run.interrupted, "rising": bool((np.diff(run.t) > 0).all()),
    "gain": run.meta["gain"], "regret": run.regret[-1], "reward": run.reward[-1], "text": str(run),
    "episodes": [int(run.n_episodes[-1]), int(run.episodes["start"].size), int(run.episodes["start"][-1])],
}))
"""
CASES = {
    "compiled": """
env, agent, horizon, progress, gain = lambda: "three-state", "scal[span_bound=2]", 10**14, False, None
learn(env(), agent, horizon=1000, seed=0)
""",
    "planning": """
env, agent, horizon, progress = lambda: "knight-quest", "ucrl[p_scale=0.05,r_scale=0.05]", 10**12, True
gain = 0.5  # to find it out may take longer than the test waits
learn("three-state", agent, horizon=1000, seed=0)
""",
    "gymnasium": """
import gymnasium
env, agent, horizon, progress = lambda: gymnasium.make("FrozenLake-v1"), "scal[span_bound=2]", 10**12, True
gain = None
learn(env(), agent, horizon=100, seed=0)
""",
}


OFTEN = """
import json, os, random, signal, threading
from spanrl import learn, make
env, agent = make("knight-quest"), "ucrl[p_scale=0.05,r_scale=0.05]"
learn(env, agent, horizon=1000, seed=0, gain=0.5)
delay, found = random.Random(0), []
for _ in range(50):
    timer = threading.Timer(0.02 + 0.03 * delay.random(), lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        run = learn(env, agent, horizon=10**12, seed=0, gain=0.5)
        found.append("interrupted" if run.interrupted and run.t[-1] > 0 else "wrong")
    except BaseException as error:
        found.append(repr(error))
    timer.join()
print(json.dumps(sorted(set(found))))
"""


def test_at_any_moment():
    """Fifty times, at moments drawn once and for all, in a run whose episodes are short: between kernels and while they return."""
    done = subprocess.run([sys.executable, "-c", OFTEN], capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout) == ["interrupted"]


@pytest.mark.parametrize("case", ["compiled", "planning", "gymnasium"])
def test_the_run_comes_back(case, capsys):
    program = subprocess.Popen(
        [sys.executable, "-c", HEAD + CASES[case] + TAIL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout.readline() == "ready\n", program.stderr.read()
        time.sleep(1.0)
        sent = time.monotonic()
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == 0, err
    assert "Traceback" not in err
    found = json.loads(out)
    seconds = found["back"] - sent
    with capsys.disabled():
        print(f" {case}: back {seconds:.3f} s after SIGINT, {found['t']:.3g} steps done", end="")
    assert 0 < seconds < MOST
    assert found["interrupted"]
    assert 0 < found["t"] < 10**12
    assert found["rising"]
    assert found["regret"] == pytest.approx(found["t"] * found["gain"] - found["reward"], abs=1e-6)
    begun, listed, last_start = found["episodes"]
    assert 0 < begun <= listed <= begun + 1, "at most the episode that was being begun has no row in the curve"
    assert last_start <= found["t"] + 1
    assert "interrupted after" in found["text"]
