"""A policy as a table and as a picture: every cell and every row compared with its probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from spanrl import Policy, make, solve
from spanrl.axes import PALETTE, discrete_colours, image, new_figure
from spanrl.errors import OptionError

NAMES = [(x, y) for x in range(3) for y in range(4) if (x, y) != (2, 3)]


@pytest.fixture(scope="module")
def switching():
    """Return a policy that serves the longer queue and mixes where they are equal; one cell is no state."""
    probs = [[0.25, 0.75] if x == y else [float(x > y), float(x < y)] for x, y in NAMES]
    return Policy(probs, state_names=NAMES, action_names=["serve x", "serve y"])


def axes():
    return new_figure().add_subplot()


def test_the_frame_has_a_row_per_action_played(switching) -> None:
    frame = switching.to_frame()
    assert frame.columns == ["x0", "x1", "action", "probability"]
    rows = [(*name, action, p) for name, row in zip(NAMES, switching.probs, strict=True)
            for action, p in zip(switching.action_names, row, strict=True) if p]  # fmt: skip
    assert frame.rows() == rows
    pytest.importorskip("pandas")
    assert list(switching.to_pandas().itertuples(index=False, name=None)) == rows


@pytest.mark.parametrize(
    ("names", "actions", "want"),
    [
        (None, None, {"state": [0, 1], "action": [1, 0]}),
        ([7, 3], [10, 20], {"state": [7, 3], "action": [20, 10]}),
        (["idle", "busy"], ["a", 1], {"state": ["idle", "busy"], "action": ["1", "a"]}),
        ([(1,), (2,)], None, {"x0": [1, 2], "action": [1, 0]}),
        ([(1, "a"), (2, "b")], None, {"state": ["(1, a)", "(2, b)"], "action": [1, 0]}),
        (["a", "b"], [2**70, 0], {"state": ["a", "b"], "action": ["0", str(2**70)]}),
        ([True, False], [("x", 1), ("y", 2)], {"state": [1, 0], "action": ["(y, 2)", "(x, 1)"]}),
    ],
)
def test_columns_follow_the_names(names, actions, want) -> None:
    frame = Policy([[0.0, 1.0], [1.0, 0.0]], state_names=names, action_names=actions).to_frame()
    assert frame.to_dict(as_series=False) == want | {"probability": [1.0, 1.0]}


def test_cells_have_the_colours_of_their_actions(switching) -> None:
    ax = switching.plot(ax=axes())
    picture = ax.get_images()[0].get_array()
    colours = np.array([to_rgb(colour) for colour in PALETTE[:2]])
    assert picture.shape == (4, 3, 4)
    for (x, y), probs in zip(NAMES, switching.probs, strict=True):
        np.testing.assert_allclose(picture[y, x], [*(probs @ colours), 1.0])
    assert picture[3, 2, 3] == 0.0, "no state, no cell"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["serve x", "serve y", "mixes"]
    assert sorted(map(tuple, ax.collections[0].get_offsets().tolist())) == [(0, 0), (1, 1), (2, 2)]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")


def test_axes_can_be_exchanged(switching) -> None:
    pictures = [switching.plot(x, 1 - x, ax=axes()).get_images()[0].get_array() for x in (0, 1)]
    np.testing.assert_array_equal(pictures[0], pictures[1].transpose(1, 0, 2))


def test_ticks_say_the_numbers_of_the_names() -> None:
    names = [(10 * i, -j) for i in range(3) for j in range(3)]
    ax = Policy.deterministic([0] * 9, 2)
    ax = Policy(ax.probs, state_names=names).plot(ax=axes())
    ax.figure.draw_without_rendering()
    shown = {text.get_position()[0]: text.get_text() for text in ax.get_xticklabels() if text.get_text()}
    assert shown[0] == "0"
    assert shown[2] == "20"
    assert {text.get_text() for text in ax.get_yticklabels()} >= {"-2", "-1", "0"}


def test_steps_over_one_coordinate() -> None:
    policy = Policy([[1, 0, 0], [0, 0.25, 0.75], [0, 0, 1]], state_names=[5, 0, 10], action_names=[0, 10, 20])
    ax = policy.plot(ax=axes())
    x, y = ax.lines[0].get_data()
    assert (x.tolist(), y.tolist()) == ([0, 5, 10], [20, 0, 20]), "the likeliest action, in order of the names"
    dots = dict(zip(map(tuple, ax.collections[0].get_offsets().tolist()), ax.collections[0].get_sizes(), strict=True))
    assert set(dots) == {(0, 10), (0, 20), (5, 0), (10, 20)}
    assert dots[0, 20] == pytest.approx(3 * dots[0, 10])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("state", "action")


def test_states_of_other_names_are_numbered() -> None:
    policy = solve(make("riverswim").mdp).policy
    ax = policy.plot(ax=axes())
    assert [text.get_text() for text in ax.get_xticklabels()] == list(policy.state_names)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["right"]


def test_other_coordinates_are_fixed() -> None:
    names = [(i, j, k) for i in range(2) for j in range(3) for k in range(4)]
    rng = np.random.default_rng(0)
    actions = rng.integers(3, size=24)
    policy = Policy(Policy.deterministic(actions, 3).probs, state_names=names)
    colours = discrete_colours(3)
    picture = policy.plot(1, 2, at={0: 1}, ax=axes()).get_images()[0].get_array()
    for (i, j, k), action in zip(names, actions, strict=True):
        if i == 1:
            np.testing.assert_allclose(picture[k, j, :3], colours[action])
    ax = policy.plot(2, at={0: 1, 1: 2}, ax=axes())
    assert ax.lines[0].get_ydata().tolist() == [a for n, a in zip(names, actions, strict=True) if n[:2] == (1, 2)]
    assert ax.get_title() == "x0 = 1, x1 = 2"


def test_coordinates_that_are_constant_need_not_be_fixed() -> None:
    policy = Policy(Policy.deterministic([0, 1]).probs, state_names=[(0, 0, 7), (0, 1, 7)])
    assert policy.plot(ax=axes()).get_title() == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"x": 3}, r"x must be a coordinate of the state names in 0\.\.2; got 3"),
        ({"x": 0, "y": True}, r"y must be a coordinate of the state names in 0\.\.2; got True"),
        ({"x": 1, "y": 1}, "x and y must be two different coordinates; got x=1, y=1"),
        ({"y": 1}, "x and y must be two different coordinates; got x=None, y=1"),
        ({}, r"3 coordinates, and those that are not drawn must be fixed\. Give at=\{2: 0\}, say"),
        ({"x": 0}, r"Give at=\{1: 0, 2: 0\}, say"),
        ({"at": {0: 1}}, r"at must fix coordinates that are not drawn, of \[2\]; got 0"),
        ({"at": {2: 9}}, r"no state has x2 = 9; it runs from 0 to 1"),
        ({"x": 0, "at": {1: 1, 2: 9}}, r"no state has x2 = 9 with the others of at"),
    ],
)
def test_bad_options(options, words) -> None:
    names = [(i, j, k) for i in range(2) for j in range(2) for k in range(2)]
    policy = Policy(np.ones((8, 1)), state_names=names)
    with pytest.raises(OptionError, match=f"Policy.plot: .*{words}"):
        policy.plot(**options, ax=axes())


def test_many_actions_go_from_dark_to_light() -> None:
    """Orders of a quantity are in order; the legend shows a dozen."""
    colours = discrete_colours(30)
    assert (np.diff(colours @ [0.2126, 0.7152, 0.0722]) > 0).all()
    policy = Policy(np.eye(30), state_names=[divmod(s, 6) for s in range(30)])
    assert len(policy.plot(ax=axes()).get_legend().get_texts()) == 12


def test_actions_that_are_never_played_take_no_colour() -> None:
    """Three orders of thirty are told apart; each has one colour in every picture of the policy."""
    actions = np.array([9, 10, 11, 9])
    policy = Policy(np.eye(30)[actions], state_names=[(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)])
    drawn = {}
    for k in (0, 1):
        ax = policy.plot(at={2: k}, ax=axes())
        picture = ax.get_images()[0].get_array()[:, 0, :3]
        drawn |= {(k, a): tuple(cell) for a, cell in zip(actions[2 * k :], picture, strict=False)}
    assert drawn[0, 9] == drawn[1, 9] == to_rgb(PALETTE[0])
    assert drawn[1, 11] == to_rgb(PALETTE[2])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["9", "11"]


def test_formulas_in_names_are_text() -> None:
    policy = Policy(np.eye(2), state_names=[(0, 0), (0, 1)], action_names=["$\\frac$", "$"])
    assert image(policy.plot(ax=axes()).figure, "png").startswith(b"\x89PNG")
    policy = Policy(np.eye(2), state_names=["$\\frac$", "$"], action_names=["$\\frac$", "$"])
    assert image(policy.plot(ax=axes()).figure, "png").startswith(b"\x89PNG")
