"""Every environment is described under the same headings, and its constants are true."""

from __future__ import annotations

import inspect
import re
from math import inf

import pytest

from spanrl import analyse, list_envs, make
from spanrl.envs.docstrings import HEADINGS, sections, summary

CONSTANTS = re.compile(r"S = (\S+), A = (\S+), g\* = (\S+), sp\(h\*\) = (\S+), D = (\S+)\.( |$)")
LARGE = {"two-queues", "taxi", "knight-quest"}
"""Their diameters are tested with them."""

ENTRIES = {entry.name: entry for entry in list_envs()}


def printed(value, like):
    """Return ``value`` with as many decimals as ``like`` has; whole numbers are exact."""
    if value == inf:
        return "∞"
    decimals = len(like.partition(".")[2])
    return f"{value:.{decimals}f}" if decimals or abs(value - round(value)) <= 1e-9 * abs(value) else str(value)


@pytest.mark.parametrize("name", ENTRIES)
def test_headings(name):
    factory = ENTRIES[name].load()
    found = sections(factory)
    wanted = [heading for heading in HEADINGS if heading != "Args" or inspect.signature(factory).parameters]
    assert list(found) == ["", *wanted]
    assert all(found[heading].endswith(".") for heading in wanted)
    described = re.findall(r"^([\w, ]+): ", found.get("Args", ""), re.MULTILINE)
    assert ", ".join(described) == ", ".join(inspect.signature(factory).parameters)
    assert re.fullmatch(r"[A-Z].{20,90}[.?]", summary(factory))


@pytest.mark.parametrize("name", ENTRIES)
def test_constants_are_those_of_the_analysis(name):
    S, A, gain, span, diameter, _ = CONSTANTS.match(
        " ".join(sections(ENTRIES[name].load())["Constants"].split())
    ).groups()
    mdp = make(name).mdp
    result = analyse(mdp, diameter=name not in LARGE)
    assert (str(mdp.n_states), str(mdp.n_actions)) == (S, A)
    assert (printed(result.gains[0], gain), printed(result.span, span)) == (gain, span)
    assert result.gains.max() - result.gains.min() < 1e-12
    if name not in LARGE:
        assert printed(result.diameter, diameter) == diameter


def test_without_docstrings():
    """As under python -OO."""

    def factory():
        raise AssertionError

    assert (summary(factory), sections(factory)) == ("", {"": ""})
