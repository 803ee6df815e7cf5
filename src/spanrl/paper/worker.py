"""A worker process that checks claims and measures slips: ``python -m spanrl.paper.worker``, one after another as they are asked for."""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter
from typing import Any

from spanrl.experiments.process import connect
from spanrl.paper.claims import SCALES, Scale, all_claims
from spanrl.paper.pool import SLIPS
from spanrl.paper.slips import all_slips
from spanrl.paper.system import System


def answer(task: str, system: System, scale: Scale) -> dict[str, Any]:
    """Do a task; return what was found, as JSON has it."""
    if task == SLIPS:
        return {"slips": [asdict(slip) for slip in all_slips()]}
    claims = {claim.id: claim for claim in all_claims()}
    return claims[task].run(system, scale).to_json()


def main() -> None:
    """Serve the process at the other end of the pipes."""
    ends = connect()
    scale, system = SCALES[ends.inbox.get()["scale"]], System.real()
    while True:
        task = ends.inbox.get()["id"]
        start = perf_counter()
        found = answer(task, system, scale)
        ends.tell(event="answered", id=task, answer=found, seconds=round(perf_counter() - start, 3))


if __name__ == "__main__":
    main()
