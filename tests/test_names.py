"""The text form name[key=value,…]: what is read, what is written, what is refused."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanrl import names
from spanrl.errors import InputError, OptionError, UnknownNameError


@pytest.mark.parametrize(
    ("text", "name", "parameters"),
    [
        ("two-state", "two-state", {}),
        ("  two-state ", "two-state", {}),
        ("two-state[]", "two-state", {}),
        ("two-state[ ]", "two-state", {}),
        ("three-state[delta=0.01]", "three-state", {"delta": 0.01}),
        ("a[x=1,y=true,z=word]", "a", {"x": 1, "y": True, "z": "word"}),
        ("a[ x = 1 , y = 2.5 ]", "a", {"x": 1, "y": 2.5}),
        ("my.env_2-b[k=-1]", "my.env_2-b", {"k": -1}),
    ],
)
def test_parse(text: str, name: str, parameters: dict[str, object]) -> None:
    assert names.parse(text) == (name, parameters)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("false", False), ("0", 0), ("7", 7), ("-7", -7), ("+7", 7), ("1_000", 1000), ("0.5", 0.5),
        ("-0.5", -0.5), ("1e7", 1e7), ("4E-3", 4e-3), ("1e+16", 1e16), ("2.5e2", 250.0), ("1_0.2_5", 10.25),
        ("inf", math.inf), ("-inf", -math.inf), ("word", "word"), ("True", "True"), ("a.b-c+d_e", "a.b-c+d_e"),
        ("007", "007"), ("1.2.3", "1.2.3"), ("e5", "e5"), ("rsqrt", "rsqrt"),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = names.parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number() -> None:
    value = names.parse_value("nan")
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize("text", ["", "a b", "[1]", "a=b", '"x"', "ä", "1,2", "x/y", "\n"])
def test_bad_values(text: str) -> None:
    with pytest.raises(OptionError, match="a value must be a number, true, false or a word"):
        names.parse_value(text)


@pytest.mark.parametrize("text", ["1_", "1__0", "0.5_", "1._5", "1_.5", "+1_", "9" * 5000])
def test_numbers_that_python_does_not_read(text: str) -> None:
    """Underscores stand between digits (TOML): anything else is a word or an error in words, never a bare ValueError."""
    found: object = text
    with contextlib.suppress(OptionError):
        found = names.parse_value(text)
    assert found == text


@pytest.mark.parametrize(
    "text", ["", " ", "[x=1]", "a[x=1", "a]", "a b", "a[x=1]b", "a[x=1] [y=2", "a/b", "ä", "a[", "[", "]"]
)
def test_bad_forms(text: str) -> None:
    with pytest.raises(OptionError, match=r"must read name or name\[key=value,...\]; got"):
        names.parse(text)


@pytest.mark.parametrize("text", ["a[x]", "a[=1]", "a[1=2]", "a[x=1,]", "a[,]", "a[x-y=1]", "a[ ,x=1]"])
def test_bad_parameters(text: str) -> None:
    with pytest.raises(OptionError, match="must read key=value"):
        names.parse(text)


@pytest.mark.parametrize("text", ["a[x=]", "a[x=1=2]", "a[x=[1]]", "a[x=1][y=2]", "a[x=y z]"])
def test_bad_parameter_values(text: str) -> None:
    with pytest.raises(OptionError, match="a value must be a number"):
        names.parse(text)


def test_given_twice() -> None:
    with pytest.raises(OptionError, match=r"'x' is given twice in 'a\[x=1,x=2\]'; give it once"):
        names.parse("a[x=1,x=2]")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (False, "false"), (5, "5"), (5.0, "5"), (-5.0, "-5"), (0.01, "0.01"), (1e16, "1e+16"),
        (1e-7, "1e-07"), (math.inf, "inf"), ("word", "word"), (0.1 + 0.2, "0.30000000000000004"),
    ],
)  # fmt: skip
def test_format_value(value: names.Value, text: str) -> None:
    assert names.format_value(value) == text


@given(st.one_of(st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=False)))
def test_values_survive_writing_and_reading(value: names.Value) -> None:
    found = names.parse_value(names.format_value(value))
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


DEFAULTS: dict[str, names.Value] = {"b": 1, "a": 0.5, "flag": False, "kind": "x"}


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "env"),
        (DEFAULTS, "env"),
        ({"a": 0.25, "b": 2}, "env[b=2,a=0.25]"),
        ({"b": 1.0}, "env"),
        ({"a": 2.0, "flag": True, "kind": "y"}, "env[a=2,flag=true,kind=y]"),
    ],
)
def test_canonical_names_only_what_differs_in_order_of_declaration(
    parameters: dict[str, names.Value], text: str
) -> None:
    assert names.canonical("env", parameters, DEFAULTS) == text
    name, found = names.parse(text)
    assert names.canonical(name, DEFAULTS | found, DEFAULTS) == text


def test_unknown_suggests_the_nearest() -> None:
    error = names.unknown("make", "environment", "two-stat", ["three-state", "two-state"])
    assert isinstance(error, UnknownNameError)
    assert isinstance(error, InputError)
    assert str(error) == "make: unknown environment 'two-stat'. Did you mean 'two-state'?"


def test_unknown_lists_what_is_known_where_nothing_is_near() -> None:
    assert str(names.unknown("make", "thing", "qqq", ["b", "a"])) == "make: unknown thing 'qqq'. Known: a, b."
    assert str(names.unknown("make", "thing", "qqq", [])) == "make: unknown thing 'qqq'. Known: none."
