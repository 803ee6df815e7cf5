"""The driver of the benchmarks' peers, with toy programs: the right reason for every way to fail, and nothing left running."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from spanrl import make, solve

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import peer as driver  # noqa: E402
import planning_peers  # noqa: E402
from harness import Timing  # noqa: E402
from peer import Peer, PeerError  # noqa: E402
from peers import install  # noqa: E402

READY = 'import sys\nprint(\'{"version": "1.0"}\', flush=True)\n'
ANSWER = "    print('{\"seconds\": 0.25}' if line.startswith('go') else '{\"gain\": %s}', flush=True)\n"
ANSWERS = READY + "for line in sys.stdin:\n" + ANSWER % 1.0
TOYS = {
    "answers": ANSWERS,
    "wrong": READY + "for line in sys.stdin:\n" + ANSWER % 7.5,
    "eats": READY + "sys.stdin.readline()\nfrom mmap import mmap\nrows = [mmap(-1, 2**26) for _ in range(64)]\n",
    "array": READY + "sys.stdin.readline()\nimport numpy\nnumpy.ones((10**5, 10**5))\n",
    "hangs": "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n" + READY
    + "print(f'{{\"version\": \"{child.pid}\"}}', file=sys.stderr)\nsys.stdin.readline()\nchild.wait()\n",
    "raises": READY + "sys.stdin.readline()\nraise ValueError('no such method')\n",
    "killed": READY + "sys.stdin.readline()\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "rubbish": READY + "sys.stdin.readline()\nprint('Iterating ...', flush=True)\nsys.stdin.readline()\n",
    "timeless": READY + "sys.stdin.readline()\nprint('{\"time\": 1}', flush=True)\nsys.stdin.readline()\n",
    "tires": ANSWERS + "    if line.startswith('result'):\n        break\nsys.stdin.readline()\nsys.exit('tired')\n",
    "stillborn": "import no_such_package_anywhere\n",
}  # fmt: skip
MEMORY = 2 * driver.GIB


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Write the toy programs where the peers' are looked for, and let this Python run them."""
    for name, code in TOYS.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.setattr(planning_peers, "PROGRAMS", tmp_path)
    monkeypatch.setattr(planning_peers, "not_installed", lambda package: None)
    monkeypatch.setattr(planning_peers, "Peer", partial(Peer, python=Path(sys.executable), memory=MEMORY))
    return tmp_path


def enter(folder, *programs):
    ways = tuple(planning_peers.Way("toy", f"{name}.py", "model.npz", name) for name in programs)
    is_wrong = partial(planning_peers.wrong, 0.9, 1.1, make("two-state").mdp)
    return planning_peers.enter("toy", ways, folder, is_wrong)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children() -> set[int]:
    """Return the processes that this one has started and that still run."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    rows = [line.split(None, 1) for line in listed.stdout.splitlines()]
    return {int(pid) for pid, *args in rows if args and "ps -o" not in args[0]}


def test_a_peer_that_answers_takes_its_turns(toy):
    before = children()
    contestant = enter(toy, "answers")
    assert contestant.reason == ""
    assert contestant.name == "toy 1.0 (answers)"
    assert contestant.tolerance == planning_peers.TOLERANCES[0]
    assert [contestant.turn() for _ in range(3)] == [0.25] * 3
    contestant.peer.close()
    assert children() == before


@pytest.mark.parametrize(
    "program, words",
    [
        ("eats", "out of memory at 2 GiB"),
        ("array", r"wants 74\.5 GiB for an array with shape \(100000, 100000\): out of memory at 2 GiB"),
        ("raises", "ended with code 1: ValueError: no such method"),
        ("killed", "was killed by SIGKILL"),
        ("rubbish", r"answered 'Iterating \.\.\.', which is no JSON object"),
        ("timeless", "answered without its seconds"),
        ("stillborn", "ended with code 1: ModuleNotFoundError: No module named 'no_such_package_anywhere'"),
        ("wrong", r"its gain is 7\.5, ours between 0\.9 and 1\.1"),
    ],
)
def test_the_reason_is_told_and_the_process_is_gone(toy, program, words):
    before = children()
    contestant = enter(toy, program)
    assert contestant.peer is None
    assert re.search(words, contestant.reason), contestant.reason
    assert children() == before
    row = planning_peers._failed("group", "case", contestant, Timing((2.0,)))
    assert row.value is None
    assert row.met is None
    assert row.note == contestant.reason


def test_one_that_hangs_is_ended_with_its_children_and_not_asked_again(toy, monkeypatch):
    monkeypatch.setattr(planning_peers, "LIMIT", 1.0)
    before, begun = children(), time.monotonic()
    contestant = enter(toy, "hangs", "hangs", "hangs")
    assert contestant.reason == "no answer in 1 s"
    assert time.monotonic() - begun < 3.0
    assert children() == before
    assert np.isnan(contestant.turn())
    row = planning_peers._failed("group", "case", contestant, Timing((0.25,)))
    assert row.note == "no answer in 1 s, at least 4 × ours (0.25 s)"


def test_what_a_peer_has_started_ends_with_it(toy):
    peer = Peer(toy / "hangs.py", python=Path(sys.executable))
    started = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(peer._process.pid)], capture_output=True, text=True, check=True
    )
    (child,) = map(int, started.stdout.split())
    assert is_running(child)
    with pytest.raises(PeerError, match=r"no answer in 0\.2 s"):
        peer.turn(1e-6, 0.2)
    deadline = time.monotonic() + 2.0
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)
    with pytest.raises(PeerError, match="is not running any more"):
        peer.turn(1e-6)


def test_one_that_fails_later_tells_that_it_answered_before(toy):
    contestant = enter(toy, "tires")
    assert contestant.reason == ""
    assert np.isnan(contestant.turn())
    assert contestant.reason == "ended with code 1: tired, after 0.25 s the first time"


def test_the_fastest_way_is_kept_and_a_failing_one_does_not_matter(toy):
    slow = TOYS["answers"].replace("0.25", "0.75")
    (toy / "slow.py").write_text(slow)
    erratic = READY + "seconds = iter((0.1, 9.0))\nfor line in sys.stdin:\n" + ANSWER % 1.0
    (toy / "erratic.py").write_text(erratic.replace("'{\"seconds\": 0.25}'", "'{\"seconds\": %s}' % next(seconds)"))
    contestant = enter(toy, "slow", "raises", "erratic", "answers", "erratic")
    assert contestant.name == "toy 1.0 (answers)"
    contestant.peer.close()


def test_a_tolerance_is_tightened_until_the_gain_is_right(toy):
    code = READY + textwrap.dedent("""
        for line in sys.stdin:
            if line.startswith("go"):
                tolerance = float(line.split()[1])
                print('{"seconds": 0.25}', flush=True)
            else:
                print('{"gain": %r}' % (1.0 if tolerance < 2e-7 else 2.0), flush=True)
    """)
    (toy / "loose.py").write_text(code)
    contestant = enter(toy, "loose")
    assert contestant.tolerance == 1e-7
    contestant.peer.close()


def test_a_policy_is_judged_by_its_own_gain(tmp_path):
    mdp = make("two-state").mdp
    best = solve(mdp)
    low, high = best.gain_bounds
    np.save(tmp_path / "best.npy", best.policy.actions)
    np.save(tmp_path / "other.npy", 1 - best.policy.actions)
    is_wrong = partial(planning_peers.wrong, low - 1e-6, high + 1e-6, mdp)
    assert is_wrong({"policy": str(tmp_path / "best.npy")}) is None
    assert "its gain is" in is_wrong({"policy": str(tmp_path / "other.npy")})


def test_the_model_file_for_storm_has_every_choice(tmp_path):
    mdp = make("two-state").mdp
    planning_peers.write_model(mdp, tmp_path)
    lines = (tmp_path / "model.drn").read_text().splitlines()
    assert lines[lines.index("@nr_choices") + 1] == str(mdp.n_pairs)
    assert sum(line.startswith("state ") for line in lines) == mdp.n_states
    rewards = [float(line.split("[")[1].rstrip("]")) for line in lines if line.startswith("\taction")]
    assert rewards == mdp.reward.tolist()
    entries = [line.split(" : ") for line in lines if line.startswith("\t\t")]
    assert [int(succ) for succ, _ in entries] == mdp.succ.tolist()
    assert [float(prob) for _, prob in entries] == mdp.prob.tolist()


def test_what_could_not_be_installed_is_kept_with_its_reason(tmp_path):
    requirements, folder = tmp_path / "requirements.txt", tmp_path / "environment"
    requirements.write_text("# peers\nno-such-peer==1.0\n")
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text(
        "#!/bin/sh\necho 'note' >&2; echo 'ERROR: No matching distribution' >&2; exit 1\n"
    )
    (folder / "bin" / "python").chmod(0o755)
    install.main(folder, requirements)
    assert json.loads((folder / "failed.json").read_text()) == {"no-such-peer": "ERROR: No matching distribution"}
    assert driver.not_installed("no-such-peer", folder) == "could not be installed: ERROR: No matching distribution"
    (folder / "bin" / "python").write_text("#!/bin/sh\nexit 0\n")
    install.main(folder, requirements)
    assert driver.not_installed("no-such-peer", folder) is None


def test_an_environment_that_is_not_there_is_a_reason_for_every_peer(tmp_path, monkeypatch):
    assert "is not made; run make bench" in driver.not_installed("mdpsolver", tmp_path / "none")
    monkeypatch.setattr(planning_peers, "not_installed", lambda package: "could not be installed: no pip")
    contestant = planning_peers.enter("stormpy", planning_peers.PEERS["stormpy"], tmp_path, lambda result: None)
    assert contestant.reason == "could not be installed: no pip"
