"""Figures of the reproduction: what is drawn is what was measured, with intervals and fits computed here by other means."""

from __future__ import annotations

import io
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest
from scipy import stats

from spanrl.axes import image
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.oracles_learning import regret_bound
from spanrl.paper.page.figures import makers
from spanrl.paper.page.looks import Picture, colour, evenly
from spanrl.paper.page.notation import large

T = 10**6
BOUNDS = (2.0, 5.0, 10.0, 15.0, 20.0, 25.0)
NAMES = [
    "diameter", "three-state", "three-state-scal", "infinite-diameter", "infinite-diameter-scal", "knight-quest", "bound",
    "sweep-three-state", "sweep-knight-quest", "planning", "time",
]  # fmt: skip


def group(env: str, c: float, *, seeds: int = 3, horizon: int = T, noise: float = 0.2, gain: float = 2 / 3) -> Curves:
    """Return runs made up: regret √t times a factor that tells seeds and bounds apart."""
    t = np.unique(np.geomspace(1, horizon, 120).astype(np.int64))
    factor = (min(c, 30.0) + 1) * (1 + noise * np.arange(seeds))[:, None]
    regret = factor * np.sqrt(t)
    span = np.minimum(c, factor * np.log1p(t))
    episodes = np.tile(1 + np.arange(len(t)), (seeds, 1)).astype(float)
    return Curves(
        env=env,
        agent="ucrl" if c == inf else f"scal[span_bound={c:g}]",
        span_bound=c,
        gain=gain,
        seeds=np.arange(seeds),
        t=t,
        reward=t * gain - regret,
        regret=regret,
        pseudo_regret=0.9 * regret,
        span=span,
        n_episodes=episodes,
        sweeps=1000.0 * factor[:, 0],
        planning=0.5 * factor[:, 0],
        simulating=0.25 * factor[:, 0],
    )


def experiment(name: str, env: str, bounds: tuple[float, ...], **options: Any) -> Experiment:
    return Experiment(name, options.get("horizon", T), tuple(group(env, c, **options) for c in bounds))


def everything(**options: Any) -> dict[str, Experiment]:
    deltas = (0.1, 0.05, 0.02, 0.01)
    by_delta = tuple(group(f"three-state[delta={delta}]", inf, seeds=2 + i) for i, delta in enumerate(deltas))
    by_delta = tuple(
        Curves(**(vars(one) | {"regret": one.regret * scale}))
        for one, scale in zip(by_delta, (1, 2.5, 4, 11), strict=True)
    )
    return {
        "diameter": Experiment("diameter", T, by_delta),
        "three-state": experiment("three-state", "three-state", (inf, *BOUNDS), **options),
        "infinite-diameter": experiment("infinite-diameter", "three-state[delta=0]", (inf, *BOUNDS), **options),
        "knight-quest": experiment("knight-quest", "knight-quest", (inf, 2.0, 5.0, 10.0, 100.0), **options),
        "three-state-sweep": experiment("three-state-sweep", "three-state", (0.5, 1.01, 400.0), **options),
        "knight-quest-sweep": experiment("knight-quest-sweep", "knight-quest", (0.5, 20.0), **options),
    }


def pictures(experiments: dict[str, Experiment]) -> list[Picture]:
    found = {name: make() for name, make in makers(experiments).items()}
    assert all(one is None or one.name == name for name, one in found.items())
    return [one for one in found.values() if one is not None]


@pytest.fixture(scope="module")
def measured() -> dict[str, Experiment]:
    return everything()


@pytest.fixture(scope="module")
def drawn(measured: dict[str, Experiment]) -> dict[str, Picture]:
    return {picture.name: picture for picture in pictures(measured)}


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return stats.t.interval(0.95, len(values) - 1, loc=values.mean(axis=0), scale=stats.sem(values, axis=0))


def curve_of(ax: Any, label: str) -> Any:
    (line,) = [line for line in ax.lines if line.get_label() == label]
    return line


# --- which ----------------------------------------------------------------------------------------------------------


def test_all_pictures_in_the_order_of_the_page(drawn: dict[str, Picture]) -> None:
    assert list(drawn) == NAMES
    for picture in drawn.values():
        assert picture.title
        assert picture.caption.endswith(".")
        assert not {"left", "right"} & set(picture.caption.replace("(", " ").split()), (
            "panels stand below each other on a phone"
        )
        told = [text.get_text() for part in picture.figure.legends for text in part.get_texts()]
        assert sorted(key.get_label() for key in picture.keys) == sorted(told)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], []),
        (["diameter"], ["diameter", "time"]),
        (["three-state"], ["three-state", "three-state-scal", "bound", "planning", "time"]),
        (["three-state-sweep"], ["time"]),
        (["knight-quest", "knight-quest-sweep"], ["knight-quest", "sweep-knight-quest", "planning", "time"]),
    ],
)
def test_what_was_not_measured_is_left_out(
    measured: dict[str, Experiment], there: list[str], expected: list[str]
) -> None:
    assert [picture.name for picture in pictures({name: measured[name] for name in there})] == expected


def test_no_bound_is_drawn_for_other_c() -> None:
    only = {"three-state": experiment("three-state", "three-state", (inf, 7.0))}
    assert "bound" not in [picture.name for picture in pictures(only)]


# --- the paper's figures --------------------------------------------------------------------------------------------


def test_diameter_shows_means_intervals_and_the_line(
    measured: dict[str, Experiment], drawn: dict[str, Picture]
) -> None:
    (ax,) = drawn["diameter"].figure.axes
    finals = [one.regret[:, -1] for one in measured["diameter"].groups]
    x, y = np.array([10, 20, 50, 100]), np.array([values.mean() for values in finals])
    (bars,) = ax.containers
    points, _, (segments,) = bars.lines
    np.testing.assert_allclose(points.get_xydata(), np.c_[x, y])
    ends = np.array([segment[:, 1] for segment in segments.get_segments()])
    np.testing.assert_allclose(ends, [interval(values) for values in finals])

    (slope, intercept), *_ = np.linalg.lstsq(np.c_[x, np.ones(4)], y, rcond=None)
    line = curve_of(ax, "least-squares line").get_xydata()
    np.testing.assert_allclose(line[:, 1], intercept + slope * line[:, 0])
    r_squared = np.corrcoef(x, y)[0, 1] ** 2
    (text,) = ax.texts
    assert text.get_text() == f"slope {slope:,.0f} per unit of 1/δ\nR² = {r_squared:.3f}"
    assert f"R² = {r_squared:.3f}" in drawn["diameter"].caption
    assert r_squared < 0.999, "the line must not fit too well to tell"


@pytest.mark.parametrize("name", NAMES[1:6])
def test_curves_are_means_with_their_bands(
    measured: dict[str, Experiment], drawn: dict[str, Picture], name: str
) -> None:
    values = ("regret", "span")  # in one order everywhere, that of the captions
    assert drawn[name].caption.startswith("Regret, then span of the optimistic bias, over T = 10⁶ steps: ")
    agents = measured[name.removesuffix("-scal")].agents()
    agents = tuple(one for one in agents if not (name.endswith("-scal") and one.span_bound == inf))
    axes = drawn[name].figure.axes
    assert [ax.get_ylabel() for ax in axes] == [{"span": "span of the optimistic bias"}.get(v, v) for v in values]
    for ax, value in zip(axes, values, strict=True):
        assert [line.get_label() for line in ax.lines] == [one.name for one in agents]
        assert len(ax.collections) == len(agents)
        for one, line, band in zip(agents, ax.lines, ax.collections, strict=True):
            t, mean = line.get_xydata().T
            at = np.searchsorted(one.t, t)
            np.testing.assert_array_equal(one.t[at], t)
            assert {one.t[0], T} <= set(t)
            np.testing.assert_allclose(mean, getattr(one, value)[:, at].mean(axis=0))
            low, high = interval(getattr(one, value)[:, at]) if np.ptp(getattr(one, value)[:, -1]) else (mean, mean)
            inside = band.get_paths()[0].vertices
            np.testing.assert_allclose(inside[inside[:, 0] == T][:, 1].min(), low[-1])
            np.testing.assert_allclose(inside[inside[:, 0] == T][:, 1].max(), high[-1])


def test_only_the_span_of_ucrl_without_a_diameter_needs_a_logarithm(drawn: dict[str, Picture]) -> None:
    scales = {name: [ax.get_yscale() for ax in drawn[name].figure.axes] for name in NAMES[1:6]}
    assert scales.pop("infinite-diameter") == ["linear", "log"]
    assert {scale for found in scales.values() for scale in found} == {"linear"}
    assert all(ax.get_xscale() == "linear" for name in NAMES[:6] for ax in drawn[name].figure.axes)


def test_captions_say_what_is_shown(measured: dict[str, Experiment], drawn: dict[str, Picture]) -> None:
    assert "noise of the rewards included" in drawn["diameter"].caption
    for name in NAMES[1:7]:
        assert "noise of the rewards included" in drawn[name].caption
        assert "3 runs per agent" in drawn[name].caption
        assert "95\u00a0%" in drawn[name].caption
        assert "T = 10⁶" in drawn[name].caption
    assert drawn["sweep-three-state"].caption.startswith(
        "Pseudo-regret of SCAL at T = 10⁶"
    )  # the title names the place
    assert (
        f"reaches {measured['three-state'].agents()[0].span.max():.3g} in single runs, early on."
        in drawn["three-state"].caption
    )
    ucrl, *scal = measured["three-state"].agents()
    least, most = (f"{one.regret[:, -1].mean():,.0f} (c = {one.span_bound:g})" for one in (scal[0], scal[-1]))
    assert (
        f"UCRL is {ucrl.regret[:, -1].mean():,.0f}, that of SCAL lies between {least} and {most}"
        in drawn["three-state"].caption
    )
    assert "19\u00a0% for c = 5" in drawn["knight-quest"].caption  # (5 + 1)/(30 + 1)


# --- ours -----------------------------------------------------------------------------------------------------------


def test_bound_is_that_of_the_theorem(drawn: dict[str, Picture]) -> None:
    (ax,) = drawn["bound"].figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    marked = {float(line.get_xdata()[0]): line for line in ax.lines if len(line.get_xdata()) == 1}
    assert len(marked) == 2
    for c, (at, point) in zip((2.0, 5.0), sorted(marked.items()), strict=True):
        t, bound = curve_of(ax, f"theorem, c = {c:g}").get_xydata().T
        np.testing.assert_allclose(bound, [regret_bound(int(x), 3, 2, 2, c, 0.05, 1.0) for x in t])
        assert point.get_ydata()[0] == pytest.approx(2 / 3 * at)
        assert regret_bound(int(at), 3, 2, 2, c, 0.05, 1.0) <= 2 / 3 * at
        assert regret_bound(int(at / 1.03), 3, 2, 2, c, 0.05, 1.0) > 2 / 3 * at / 1.03
        assert f"t = {large(at)} (c = {c:g})" in drawn["bound"].caption
    t, trivial = curve_of(ax, "trivial bound g* t").get_xydata().T
    np.testing.assert_allclose(trivial, 2 / 3 * t)
    np.testing.assert_allclose(curve_of(ax, "SCAL c = 5").get_ydata()[-1], 6 * 1.2 * 1000)


@pytest.mark.parametrize(
    ("name", "bounds", "span"),
    [
        ("three-state", (0.5, 1.01, *BOUNDS, 400.0), 1 / 0.995),
        ("knight-quest", (0.5, 2.0, 5.0, 10.0, 20.0, 100.0), 3.28),
    ],
)
def test_sweep_shows_every_c(
    measured: dict[str, Experiment], drawn: dict[str, Picture], name: str, bounds: tuple[float, ...], span: float
) -> None:
    (ax,) = drawn[f"sweep-{name}"].figure.axes
    groups = {one.span_bound: one for key in (name, f"{name}-sweep") for one in measured[key].groups}
    assert len(ax.containers) == len(bounds)
    for c, bars in zip(bounds, ax.containers, strict=True):
        point, _, (segments,) = bars.lines
        finals = groups[c].pseudo_regret[:, -1]
        np.testing.assert_allclose(point.get_xydata(), [[c, finals.mean()]])
        np.testing.assert_allclose(segments.get_segments()[0][:, 1], interval(finals))
        assert point.get_markerfacecolor() == colour(c)
    upright = [
        line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2
    ]
    assert upright == [pytest.approx(span, abs=0.006)]
    level = [line.get_ydata()[0] for line in ax.lines if list(line.get_xdata()) == [0, 1]]
    assert level == [pytest.approx(groups[inf].pseudo_regret[:, -1].mean())]
    shade, band = (patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches)
    assert shade.x1 == pytest.approx(upright[0])
    np.testing.assert_allclose(sorted((band.y0, band.y1)), interval(groups[inf].pseudo_regret[:, -1]))


def test_sweep_leaves_out_runs_that_are_shorter(measured: dict[str, Experiment]) -> None:
    short = experiment("knight-quest-sweep", "knight-quest", (0.5, 1.0, 20.0), horizon=10**5)
    found = {one.name: one for one in pictures(measured | {"knight-quest-sweep": short})}
    (ax,) = found["sweep-knight-quest"].figure.axes
    assert [float(bars.lines[0].get_xdata()[0]) for bars in ax.containers] == [2, 5, 10, 100]
    main = experiment("knight-quest", "knight-quest", (inf, 5.0))
    assert "sweep-knight-quest" not in [
        one.name for one in pictures({"knight-quest": main, "knight-quest-sweep": short})
    ], "one bound alone is no sweep"


def test_planning_counts_by_the_episode(measured: dict[str, Experiment], drawn: dict[str, Picture]) -> None:
    left, right = drawn["planning"].figure.axes
    agents = [one for name in ("three-state", "infinite-diameter", "knight-quest") for one in measured[name].agents()]
    for ax, amount in ((left, lambda one: one.sweeps), (right, lambda one: 1e6 * one.planning)):
        points = [float(bars.lines[0].get_xdata()[0]) for bars in ax.containers]
        expected = [amount(one) / one.n_episodes[:, -1] for one in agents]
        np.testing.assert_allclose(points, [np.median(values) for values in expected])
        ranges = [bars.lines[2][0].get_segments()[0][:, 0] for bars in ax.containers]
        np.testing.assert_allclose(ranges, [(values.min(), values.max()) for values in expected])
    names = [
        "Three states, D = 200",
        *(one.name for one in agents[:7]),
        "Three states, D = ∞",
        *(one.name for one in agents[7:14]),
    ]
    assert [text.get_text() for text in left.get_yticklabels()] == [
        *names,
        "Knight Quest",
        *(one.name for one in agents[14:]),
    ]
    assert "median and range of 3 runs per agent" in drawn["planning"].caption
    assert "0.097 to 0.84 (Three states, D = 200)" in drawn["planning"].caption  # (2 + 1)/(30 + 1) to (25 + 1)/(30 + 1)


def test_time_adds_up(measured: dict[str, Experiment], drawn: dict[str, Picture]) -> None:
    (ax,) = drawn["time"].figure.axes
    planning, simulating = ax.containers
    for name, plan, simulation in zip(measured, planning, simulating, strict=True):
        groups = measured[name].groups
        assert plan.get_width() == pytest.approx(sum(one.planning.sum() for one in groups))
        assert simulation.get_width() == pytest.approx(sum(one.simulating.sum() for one in groups))
        assert simulation.get_x() == pytest.approx(plan.get_width())
    assert [text.get_text() for text in ax.get_yticklabels()] == list(measured)
    assert all("67\u00a0% planning" in text.get_text() for text in ax.texts)


# --- look -----------------------------------------------------------------------------------------------------------


def test_a_bound_has_one_colour_and_ucrl_is_dashed(drawn: dict[str, Picture]) -> None:
    lines = [line for name in NAMES[1:7] for ax in drawn[name].figure.axes for line in ax.lines]
    looks: dict[str, set[tuple[Any, ...]]] = {}
    for line in lines:
        if line.get_label().startswith(("UCRL", "SCAL")):
            looks.setdefault(line.get_label(), set()).add((line.get_color(), line.get_linestyle(), line.get_marker()))
    assert all(len(found) == 1 for found in looks.values())
    assert looks["UCRL"] == {("#222222", "--", "None")}
    markers = [next(iter(looks[f"SCAL c = {c:g}"]))[2] for c in (*BOUNDS, 100)]
    assert len(set(markers)) == 7


def test_colours_darken_with_c() -> None:
    def lightness(code: str) -> float:
        red, green, blue = (int(code[i : i + 2], 16) for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    found = [lightness(colour(c)) for c in (0.125, 0.5, 1, *BOUNDS, 50, 100)]
    assert all(first > second + 3 for first, second in pairwise(found))
    assert colour(0.01) == colour(0.1)
    assert colour(400) == colour(100)


def test_nothing_sticks_out_and_no_label_covers_another(drawn: dict[str, Picture]) -> None:
    for name, picture in drawn.items():
        figure = picture.figure
        figure.savefig(io.BytesIO())
        box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert box.x0 >= 0, name
        assert box.y0 >= 0, name
        assert box.x1 <= width, name
        assert box.y1 <= height, name
        boxes = [text.get_window_extent() for ax in figure.axes for text in ax.texts]
        boxes += [part.get_window_extent() for part in figure.legends]
        boxes += [
            label.get_window_extent()
            for ax in figure.axes
            for label in (ax.xaxis.label, ax.yaxis.label)
            if label.get_text()
        ]
        for i, one in enumerate(boxes):
            assert not any(one.overlaps(other) for other in boxes[:i]), name


@pytest.mark.parametrize("options", [{"noise": 0.0}, {"seeds": 1}], ids=["zero variance", "one run"])
def test_runs_that_agree_and_single_runs_draw_without_a_warning(options: dict[str, Any]) -> None:
    found = {one.name: one for one in pictures(everything(**options))}
    assert list(found) == NAMES
    for picture in found.values():
        image(picture.figure, "png")
    bands = found["three-state"].figure.axes[0].collections
    assert len(bands) == (0 if options.get("seeds") == 1 else 7)
    for band in bands:
        vertices = band.get_paths()[0].vertices
        assert np.ptp(vertices[vertices[:, 0] == T][:, 1]) == 0


def test_a_regret_below_zero_leaves_the_logarithm_alone() -> None:
    groups = [group("three-state", c) for c in (inf, 2.0, 5.0)]
    lucky = [Curves(**(vars(one) | {"regret": one.regret - 5000})) for one in groups]
    found = {one.name: one for one in pictures({"three-state": Experiment("three-state", T, tuple(lucky))})}
    image(found["bound"].figure, "png")
    assert found["bound"].figure.axes[0].get_ylim()[0] > 0


def test_svg_is_the_same_every_time_with_text_as_paths(measured: dict[str, Experiment]) -> None:
    made = makers(measured)
    first, second = ([image(made[name]().figure, "svg") for name in ("diameter", "three-state")] for _ in range(2))
    assert first == second
    for content in first:
        assert content.startswith(b"<?xml")
        assert b"<text" not in content
        assert b"dc:date" not in content


def test_long_curves_are_thinned_evenly() -> None:
    t = np.unique(np.geomspace(1, 10**7, 5000).astype(np.int64))
    kept = evenly(t)
    assert len(kept) <= 400
    assert (kept[0], kept[-1]) == (0, len(t) - 1)
    gaps = np.diff(t[kept])
    assert gaps.max() < 3 * 10**7 / 400


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (999.6, "999.6"),
        (1234.5, "1,234"),
        (99_999, "99,999"),
        (123_456, "1.23·10⁵"),
        (999_999, "10⁶"),
        (-300.0, "−300"),
        (4e8, "4·10⁸"),
    ],
)
def test_large_numbers_are_powers_of_ten(value: float, text: str) -> None:
    assert large(value) == text
