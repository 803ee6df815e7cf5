"""Claims in worker processes: what they find comes back, and one that never ends or takes its process with it is given up."""

from __future__ import annotations

import textwrap

import pytest

from spanrl.paper import pool
from spanrl.paper.claims import SMOKE, all_claims
from spanrl.paper.claims.base import CheckResult
from spanrl.paper.system import System


def gather(ids, **options):
    found, seen = {}, set()
    pool.ask(ids, SMOKE, done=found.__setitem__, tick=seen.update, **{"workers": 2, **options})
    return found, seen


def test_workers_find_what_the_claims_find_here():
    claims = {claim.id: claim for claim in all_claims()}
    found, seen = gather(["O5", "X1", "F3"])
    assert seen == {"O5", "X1", "F3"}
    for name, one in found.items():
        assert one.content == claims[name].run(System.real(), SMOKE).to_json()
        assert one.seconds >= 0


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Let the pool start a program of the test's own."""

    def put(body):
        (tmp_path / "odd_worker.py").write_text(textwrap.dedent(body))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(pool, "MODULE", "odd_worker")

    return put


def test_claim_that_never_ends_is_given_up(module):
    module("import sys\nfor line in sys.stdin: pass")
    found, _ = gather(["E1", "O1", "O2"], workers=1, limit=0.5)
    assert {(one.content, one.why) for one in found.values()} == {(None, "given up after 0.5 s")}
    assert list(found) == ["E1", "O1", "O2"]


def test_claim_whose_process_dies_is_named_and_the_others_go_on(module):
    module(
        """
        import json, os, sys
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == "O1":
                os.abort()
            if "id" in message:
                print(json.dumps({"event": "answered", "id": message["id"], "answer": {"a": 1}, "seconds": 1.0}), flush=True)
        """
    )
    found, _ = gather(["O1", "O2", "O3"], workers=1)
    assert found["O1"].content is None
    assert "killed by signal 6" in found["O1"].why
    assert [found[name].content for name in ("O2", "O3")] == [{"a": 1}, {"a": 1}]


def test_numbers_that_are_none_become_text():
    outcome = CheckResult("fails", {"a": float("nan"), "b": [1.0, float("inf")], "c": True, "d": 0.5})
    assert outcome.to_json() == {"verdict": "fails", "numbers": {"a": "nan", "b": [1.0, "inf"], "c": True, "d": 0.5}}
    assert CheckResult.from_json(outcome.to_json()).numbers["b"] == [1.0, "inf"]
