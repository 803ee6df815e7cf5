"""What a start costs: a fresh process each time, with the kernels already compiled."""

from __future__ import annotations

import subprocess
import sys

from harness import REPEATS, Row, interleaved, value_row

_CASES = {
    "python -c pass": (["-c", "pass"], None),
    "import spanrl": (["-c", "import spanrl"], 0.3),
    "spanrl --help": (["-m", "spanrl.cli", "--help"], 0.4),
    "spanrl plan two-state": (["-m", "spanrl.cli", "plan", "two-state"], 1.0),
    "spanrl plan knight-quest": (["-m", "spanrl.cli", "plan", "knight-quest"], None),
    "spanrl learn two-state ucrl --horizon 1000": (
        ["-m", "spanrl.cli", "learn", "two-state", "ucrl", "--horizon", "1000"],
        None,
    ),
}


def start_rows(smoke: bool) -> list[Row]:
    """The first round, which may still compile, is not counted."""

    def run(arguments: list[str]) -> None:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    candidates = {case: (lambda arguments=arguments: run(arguments)) for case, (arguments, _) in _CASES.items()}
    times = interleaved(candidates, 1 if smoke else REPEATS + 2)
    return [
        value_row(
            "Starting, in fresh processes, with warm caches", case, times[case].seconds, "s", target=target,
            note="the floor" if case.startswith("python") else "",
            data={"readme": f"`{case}` in a fresh process"} if target else {},
        )
        for case, (_, target) in _CASES.items()
    ]  # fmt: skip
