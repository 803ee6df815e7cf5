"""``python -m spanrl.paper [smoke|quick|paper]``: check every claim and print the verdicts.

Exit code 1 when a verdict differs from the committed table of expected ones.
"""

from __future__ import annotations

import sys
from time import perf_counter

from spanrl.paper.claims import PAPER, QUICK, SMOKE, all_claims, expected_verdicts
from spanrl.paper.system import System

_SCALES = {scale.name: scale for scale in (SMOKE, QUICK, PAPER)}


def main(arguments: list[str]) -> int:
    """Run the checkers at the scale asked for, one line a claim."""
    name = arguments[0] if arguments else "smoke"
    if name not in _SCALES:
        print(f"spanrl.paper: the scale must be one of {', '.join(_SCALES)}; got {name!r}.", file=sys.stderr)
        return 2
    system, expected, surprises = System.real(), expected_verdicts(), 0
    claims = all_claims()
    print(f"Checking {len(claims)} claims of the paper at scale {name}:")
    for claim in claims:
        start = perf_counter()
        verdict = claim.run(system, _SCALES[name]).verdict
        as_expected = verdict == expected[claim.id]["verdict"]
        surprises += not as_expected
        mark = "✓" if as_expected else f"✗ expected {expected[claim.id]['verdict']}"
        print(f"  {claim.id:<3} {verdict:<8} {mark}  {claim.title}  ({perf_counter() - start:.1f} s)", flush=True)
    print(f"{len(claims) - surprises} of {len(claims)} verdicts are as expected.")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
