"""The recorder: an interruption between two of its statements leaves rows and episodes that belong together."""

import numpy as np
import pytest

from spanrl import learn
from spanrl.learning.recorder import Recorder


@pytest.mark.parametrize("method", ["_row", "_move_to"])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_ctrl_c_within_the_recorder_lists_no_episode_that_has_not_begun(monkeypatch, method, call):
    original, calls = getattr(Recorder, method), []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(Recorder, method, interrupted)
    run = learn("riverswim", "tsde", horizon=10_000_000, seed=0)
    assert run.interrupted
    begun = int(run.n_episodes[-1]) if run.t.size else 0
    assert begun <= run.episodes["start"].size <= begun + 1
    assert run.episodes["start"][-1] <= (run.t[-1] if run.t.size else 0) + 1
    assert (np.diff(run.n_episodes) >= 0).all()
    assert (np.diff(run.t) > 0).all()
