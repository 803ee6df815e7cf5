"""Episodes of fixed length: their starts are known beforehand."""

from __future__ import annotations

import pytest

from spanrl import SCAL, UCRL, check_agent, learn, make_agent
from spanrl.agents.episodes import episode_rule
from spanrl.agents.registry import agent_id
from spanrl.agents.schedule import FixedSchedule
from spanrl.errors import OptionError
from ways import assert_all_ways_agree, ragged_env


@pytest.mark.parametrize("steps", [1, 7, 100, 10**15 - 1])
@pytest.mark.parametrize("agent", ["ucrl[bounds=kt]", "scal[span_bound=0.4,p_scale=0.02]"])
def test_episodes_begin_on_schedule(agent, steps):
    run = learn(ragged_env(), make_agent(agent, episodes=f"every-{steps}"), horizon=705, seed=1)
    assert run.episodes["start"].tolist() == list(range(1, 706, steps))


@pytest.mark.parametrize("agent", [UCRL(bounds="kt", episodes="every-30"), SCAL(0.4, p_scale=0.02, episodes="every-7")])
def test_all_ways_agree(agent):
    assert_all_ways_agree(ragged_env(2), agent, 1200, 5)


class TestNames:
    @pytest.mark.parametrize("text", ["ucrl[episodes=every-100]", "scal[span_bound=5,bounds=kt,episodes=every-1]"])
    def test_round_trip(self, text):
        assert agent_id(make_agent(text)) == agent_id(text) == text
        assert make_agent(text) == make_agent(agent_id(make_agent(text)))

    def test_the_rule(self):
        assert episode_rule("UCRL", "every-24") == FixedSchedule(24)

    @pytest.mark.parametrize("number", ["0", "", "N", "1.5", "1e3", "007", "-5", 16 * "9"])
    def test_others_are_refused(self, number):
        name = f"every-{number}"
        words = (
            rf"UCRL: episodes='every-N' needs a whole number N of 1 to 15 digits; got '{name}'\. Use every-100, say\."
        )
        with pytest.raises(OptionError, match=words):
            UCRL(episodes=name)

    def test_a_word_that_is_none_is_told_of_it(self):
        with pytest.raises(
            OptionError, match=r"UCRL: episodes must be doubling or vm or powers or every-N; got 'daily'"
        ):
            UCRL(episodes="daily")

    def test_contract(self):
        check_agent("ucrl[bounds=kt,episodes=every-10]")
