"""Bounds by name: what one does not define is refused with a sentence, unless it has no effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from spanrl import SCAL, UCRL, learn
from spanrl.confidence import bernstein, bounds
from spanrl.confidence.bernstein import BernsteinBox, fill_bernstein
from spanrl.confidence.bounds import make_bounds
from spanrl.confidence.estimate import Estimate
from spanrl.errors import OptionError
from spanrl.kernels.layout import BOX


@dataclass(frozen=True)
class Bare(Estimate):
    """A bound with a level alone."""

    delta: float = 0.05

    fill: ClassVar = fill_bernstein
    geometry: ClassVar = BOX
    n_kept: ClassVar = (2, 3)

    def settings(self, info):
        return BernsteinBox(self.delta).settings(info)


@dataclass(frozen=True)
class Half(Bare):
    """A bound with one of the factors."""

    r_scale: float = 1.0


@dataclass(frozen=True)
class Varying(Bare):
    """A bound whose level may vary."""

    varies_delta: ClassVar = True


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for kind in (Bare, Half, Varying):
        monkeypatch.setitem(bounds.BOUNDS, kind.__name__.lower(), f"bernstein:{kind.__name__}")
        monkeypatch.setattr(bernstein, kind.__name__, kind, raising=False)


def test_the_bound_of_a_name():
    assert make_bounds("SCAL", "bernstein", 0.1, 0.5, 0.25) == BernsteinBox(0.1, 0.5, 0.25)
    assert make_bounds("SCAL", "bernstein", "rsqrt", 1.0, 1.0, perturb=True) == BernsteinBox("rsqrt")
    assert make_bounds("UCRL", "bare", 0.1, 1.0, 1) == Bare(0.1)
    assert make_bounds("UCRL", "half", 0.1, 1.0, 0.5) == Half(0.1, 0.5)
    assert make_bounds("UCRL", "varying", "rsqrt", 1.0, 1.0) == Varying("rsqrt")


@pytest.mark.parametrize("name", ["bernstien", "", None, 5, "Bernstein"])
def test_a_name_that_is_none(name):
    with pytest.raises(
        OptionError, match=r"SCAL: bounds must be bernstein or .*; got .*\. Leave it out for 'bernstein'"
    ):
        make_bounds("SCAL", name, 0.05, 1.0, 1.0)


REFUSED = [
    (("bare", 0.05, 0.5, 1.0), r"bounds='bare' have no factor p_scale; got 0\.5"),
    (("bare", 0.05, 1.0, 0.5), r"bounds='bare' have no factor r_scale; got 0\.5"),
    (("half", 0.05, 2.0, 0.5), r"bounds='half' have no factor p_scale; got 2\.0"),
    (("bare", "rsqrt", 1.0, 1.0), r"bounds='bare' need a fixed delta; got 'rsqrt'"),
    (("half", "rsqrt", 1.0, 1.0), r"bounds='half' need a fixed delta; got 'rsqrt'"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_what_a_bound_does_not_define(given, words):
    remedy = r"\. Leave it out, or use bounds='bernstein'\."
    with pytest.raises(OptionError, match=f"somebody: {words}{remedy}"):
        make_bounds("somebody", *given)
    name, delta, p_scale, r_scale = given
    for agent, first in ((SCAL, (1.0,)), (UCRL, ())):
        with pytest.raises(OptionError, match=f"{agent.__name__}: {words}{remedy}"):
            agent(*first, delta=delta, p_scale=p_scale, r_scale=r_scale, bounds=name)


def test_a_bound_without_radii_cannot_be_perturbed():
    words = r"bounds='bare' cannot be perturbed; got True\. Leave it out, or use bounds='bernstein'\."
    with pytest.raises(OptionError, match=f"somebody: {words}"):
        make_bounds("somebody", "bare", 0.05, 1.0, 1.0, perturb=True)
    with pytest.raises(OptionError, match=f"SCAL: {words}"):
        SCAL(1.0, perturb=True, bounds="bare")


def test_agents_take_it_by_name():
    """The same formula under another name: the same run."""
    for named, plain in (("ucrl[bounds=bare]", "ucrl"), ("scal[span_bound=1,bounds=half]", "scal[span_bound=1]")):
        run, wanted = (learn("three-state", agent, horizon=2000, seed=0) for agent in (named, plain))
        assert run.meta["agent"] == named
        assert run.reward.tobytes() == wanted.reward.tobytes()
        assert run.episodes["gain"].tobytes() == wanted.episodes["gain"].tobytes()
