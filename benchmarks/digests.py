"""Digests of learning runs, to see whether a change of shape changed a bit: ``python benchmarks/digests.py [--write]``.

Each entry of ``digests.json`` names its run and holds the SHA-256 of what the agent did: rewards, spans, episodes with their gains and
sweeps. The regret is left out, since g* depends on the machine's linear algebra. Bits depend on processor and versions, so the file names
both; on others, make it anew from the old state first. Without ``--write`` all runs are made again and compared; the exit code is 1 where
one differs.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import spanrl
from spanrl.bench import garnet, machine

FILE = Path(__file__).with_name("digests.json")
AGENTS = (
    "ucrl", "ucrl[delta=rsqrt]", "ucrl[p_scale=0.05,r_scale=0.05]", "ucrl[warm_start=false]", "ucrl2", "ucrl2[delta=0.2]",
    "scal[span_bound=0]", "scal[span_bound=2]", "scal[span_bound=5,p_scale=0.05,r_scale=0.1]", "scal[span_bound=1,policy=greedy]",
    "scal[span_bound=2,best_of_both=true]", "scal[span_bound=2,warm_start=false]", "scal[span_bound=2,delta=rsqrt]",
)  # fmt: skip
ENVS = (
    "two-state", "three-state", "three-state[delta=0]", "knight-quest", "riverswim", "riverswim[n_states=20]",
    "counterexample-nonfeasible", "counterexample-fixed-point", "counterexample-cycle",
)  # fmt: skip
HORIZON, SEEDS = 30_000, (0, 1)
PERTURBED, SHORT = "scal[span_bound=2,perturb=true]", 300


def runs() -> Iterator[tuple[str, str | spanrl.MDP, str, int, int]]:
    """Yield name, environment, agent, horizon and seed of every run."""
    models: dict[str, str | spanrl.MDP] = {name: name for name in ENVS}
    models |= {f"garnet-{S}-{A}-{b}": garnet(S, A, b, seed=0) for S, A, b in ((5, 2, 2), (30, 3, 4), (200, 2, 3))}
    for label, env in models.items():
        for agent in AGENTS:
            for seed in SEEDS:
                yield f"{label}/{agent}/{seed}", env, agent, HORIZON, seed
        if label not in ("knight-quest", "garnet-200-2-3"):
            yield f"{label}/{PERTURBED}/0", env, PERTURBED, SHORT, 0


def digest(run: spanrl.Run) -> str:
    """Return the SHA-256 of what happened in a run."""
    sha = hashlib.sha256()
    for array in (run.t, run.reward, run.span, run.n_episodes, *(run.episodes[name] for name in sorted(run.episodes))):
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def main() -> int:
    warnings.simplefilter("ignore")  # a short horizon is meant
    found = {name: digest(spanrl.learn(env, agent, horizon=T, seed=seed)) for name, env, agent, T, seed in runs()}
    here = machine()
    here = {key: here[key] for key in ("processor", "python", "numpy", "numba")}
    if "--write" in sys.argv:
        FILE.write_text(json.dumps({"machine": here, "runs": found}, indent=1) + "\n", "utf-8")
        print(f"{len(found)} digests written to {FILE}")
        return 0
    kept = json.loads(FILE.read_text("utf-8"))
    if kept["machine"] != here:
        print(f"note: the digests were made on {kept['machine']}, this is {here}")
    different = [name for name, value in found.items() if kept["runs"].get(name) != value]
    print(*different[:20], sep="\n")
    print(f"{len(found) - len(different)} of {len(found)} runs have the bits of {FILE.name}")
    return 1 if different or set(found) != set(kept["runs"]) else 0


if __name__ == "__main__":
    sys.exit(main())
