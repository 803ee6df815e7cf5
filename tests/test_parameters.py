"""Parameters read from a signature: types by annotation or default, required ones, text forms."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from spanrl.errors import OptionError, UnknownNameError
from spanrl.parameters import Parameter, check_new_name, declared, defaults, split, values


@dataclass(frozen=True)
class Agent:
    """Fields of every kind, for the tests."""

    bound: float
    delta: float | str = 0.05
    steps: int = 10
    word: str = "mixture"
    fast: bool = True


DECLARED = {
    "bound": Parameter(float, None),
    "delta": Parameter((float, str), 0.05),
    "steps": Parameter(int, 10),
    "word": Parameter(str, "mixture"),
    "fast": Parameter(bool, True),
}


def compiled(source):
    """Return the ``factory`` that ``source`` defines, with annotations that are types, not texts as in this file."""
    namespace = {}
    exec(compile(source, "<source>", "exec", dont_inherit=True), namespace)
    return namespace["factory"]


class TestDeclared:
    def test_a_dataclass(self):
        assert declared("agent", Agent) == DECLARED
        assert list(declared("agent", Agent)) == list(DECLARED), "in order of declaration"

    def test_no_parameters(self):
        assert declared("nothing", lambda: None) == {}

    def test_annotations_that_are_types_and_none(self):
        found = declared(
            "factory",
            compiled("def factory(a: int, b: float = 1, *, c=2.5, d=False, e='x', f: float | str = 'y'): ..."),
        )
        assert [parameter.kind for parameter in found.values()] == [int, float, float, bool, str, (float, str)]
        assert [parameter.default for parameter in found.values()] == [None, 1.0, 2.5, False, "x", "y"]
        assert type(found["b"].default) is float

    @pytest.mark.parametrize(
        ("factory", "key"),
        [
            (lambda *args: None, "args"),
            (lambda **options: None, "options"),
            (lambda x, /: None, "x"),
            (lambda x: None, "x"),
            (lambda x=(): None, "x"),
            (lambda x=None: None, "x"),
        ],
    )
    def test_what_has_no_text_form(self, factory, key):
        with pytest.raises(
            OptionError,
            match=rf"mine: every parameter must be a keyword of type bool, int, float or str.*'{key}' is not",
        ):
            declared("mine", factory)

    def test_a_default_that_does_not_fit_its_annotation(self):
        with pytest.raises(OptionError, match=r"mine: n must be a whole number; got 2\.5"):
            declared("mine", compiled("def factory(n: int = 2.5): ..."))

    def test_defaults(self):
        assert defaults(DECLARED) == {"delta": 0.05, "steps": 10, "word": "mixture", "fast": True}


class TestValues:
    def test_given_ones_and_defaults(self):
        found = values("agent", DECLARED, {"steps": 3.0, "bound": 2})
        assert found == {"bound": 2.0, "delta": 0.05, "steps": 3, "word": "mixture", "fast": True}
        assert [type(value) for value in found.values()] == [float, float, int, str, bool]
        assert list(found) == list(DECLARED)

    def test_a_missing_one(self):
        with pytest.raises(OptionError, match=r"agent: bound must be given\. Write agent\[bound=…\]"):
            values("agent", DECLARED, {"steps": 3})

    def test_an_unknown_one(self):
        with pytest.raises(UnknownNameError, match=r"agent: unknown parameter 'step'\. Did you mean 'steps'\?"):
            values("agent", DECLARED, {"bound": 1, "step": 3})

    def test_a_wrong_one(self):
        with pytest.raises(OptionError, match=r"agent: fast must be true or false; got 'yes'"):
            values("agent", DECLARED, {"bound": 1, "fast": "yes"})


class TestSplit:
    def test_text_and_keywords_join(self):
        assert split("who", "a[x=1]", {"y": 2}) == ("a", {"x": 1, "y": 2})
        assert split("who", "a", {}) == ("a", {})

    def test_twice(self):
        with pytest.raises(
            OptionError, match=r"who: 'x' is given in the text 'a\[x=1\]' and as a keyword\. Give it once"
        ):
            split("who", "a[x=1]", {"x": 1})

    @pytest.mark.parametrize("text", [None, 5, ["a"]])
    def test_no_text(self, text):
        with pytest.raises(OptionError, match=r"who: takes a text such as name\[key=value\]; got .*\. Give its name"):
            split("who", text, {})


class TestNewNames:
    def test_a_new_word(self):
        check_new_name("who", "my-agent_2.0", {"scal": 1})

    def test_taken(self):
        with pytest.raises(OptionError, match=r"who: 'scal' is registered already\. Choose another name"):
            check_new_name("who", "scal", {"scal": 1})

    @pytest.mark.parametrize("name", [5, None, "a[x=1]", "a[]", " a"])
    def test_no_word(self, name):
        with pytest.raises(
            OptionError, match=r"who: a name must be a word of \[A-Za-z0-9_\.-\]; got .*\. Drop the brackets"
        ):
            check_new_name("who", name, {})
