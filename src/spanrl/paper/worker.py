"""A worker process that checks claims: ``python -m spanrl.paper.worker``, one claim after another as they are asked for."""

from __future__ import annotations

from time import perf_counter

from spanrl.experiments.process import connect
from spanrl.experiments.worker import one_line
from spanrl.paper.claims import SCALES, Claim, Outcome, Scale, all_claims
from spanrl.paper.system import System


def checked(claim: Claim, system: System, scale: Scale) -> Outcome:
    """Return the outcome of a claim; whatever goes wrong in its checker is a failure with its message, for nothing may hide it."""
    try:
        return claim.run(system, scale)
    except Exception as error:
        return Outcome("fails", {"error": one_line(error)})


def main() -> None:
    """Serve the process at the other end of the pipes."""
    ends = connect()
    scale, system = SCALES[ends.inbox.get()["scale"]], System.real()
    claims = {claim.id: claim for claim in all_claims()}
    while True:
        claim = claims[ends.inbox.get()["id"]]
        start = perf_counter()
        outcome = checked(claim, system, scale)
        ends.tell(event="checked", id=claim.id, outcome=outcome.to_json(), seconds=round(perf_counter() - start, 3))


if __name__ == "__main__":
    main()
