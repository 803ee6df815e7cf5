"""Options: what counts as a bool, a whole number, a number or a word, and the sentences for the rest."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isnan, nan

import numpy as np
import pytest

from spanrl.errors import OptionError
from spanrl.options import one_of, require, typed


class TestRequire:
    def test_the_sentence(self):
        require(True, "who", "rule", 1, "Remedy.")
        with pytest.raises(OptionError) as caught:
            require(False, "who", "x must be small", "a", "Make it small.")
        assert str(caught.value) == "who: x must be small; got 'a'. Make it small."


class TestOneOf:
    def test_the_sentence(self):
        one_of("who", "colour", "red", ("red", "blue"))
        with pytest.raises(OptionError) as caught:
            one_of("who", "colour", "green", ("red", "blue"))
        assert str(caught.value) == "who: colour must be red or blue; got 'green'. Leave it out for 'red'."

    @pytest.mark.parametrize("value", [None, 0, [], "RED"])
    def test_anything_else(self, value):
        with pytest.raises(OptionError, match="colour must be red or blue"):
            one_of("who", "colour", value, ("red", "blue"))


class TestTyped:
    @pytest.mark.parametrize(
        ("value", "kind", "wanted"),
        [
            (True, bool, True),
            (np.False_, bool, False),
            (3, int, 3),
            (3.0, int, 3),
            (1e3, int, 1000),
            (np.uint8(5), int, 5),
            (-4, int, -4),
            (3, float, 3.0),
            (Fraction(1, 4), float, 0.25),
            (np.float32(0.5), float, 0.5),
            (inf, float, inf),
            ("word", str, "word"),
            ("a.b-c_d+1x", str, "a.b-c_d+1x"),
            ("rsqrt", (float, str), "rsqrt"),
            (0.05, (float, str), 0.05),
            (1, (float, str), 1.0),
        ],
    )
    def test_values_that_fit(self, value, kind, wanted):
        found = typed("who", "x", value, kind)
        assert found == wanted
        assert type(found) is type(wanted)

    def test_minus_zero_is_zero(self):
        assert str(typed("who", "x", -0.0, float)) == "0.0"

    def test_nan_is_a_number(self):
        assert isnan(typed("who", "x", nan, float))

    @pytest.mark.parametrize(
        ("value", "kind", "words"),
        [
            (1, bool, "x must be true or false; got 1. Give x as bool."),
            ("true", bool, "x must be true or false; got 'true'. Give x as bool."),
            (True, int, "x must be a whole number; got True. Give x as int."),
            (2.5, int, "x must be a whole number; got 2.5. Give x as int."),
            (nan, int, "x must be a whole number; got nan. Give x as int."),
            (inf, int, "x must be a whole number; got inf. Give x as int."),
            ("3", int, "x must be a whole number; got '3'. Give x as int."),
            (False, float, "x must be a number; got False. Give x as float."),
            ("3", float, "x must be a number; got '3'. Give x as float."),
            (None, float, "x must be a number; got None. Give x as float."),
            (1j, float, "x must be a number; got 1j. Give x as float."),
            (5, str, "x must be a word of [A-Za-z0-9_.+-]; got 5. Give x as str."),
            ("two words", str, "x must be a word of [A-Za-z0-9_.+-]; got 'two words'. Give x as str."),
            ("true", str, "x must be a word of [A-Za-z0-9_.+-]; got 'true'. Give x as str."),
            ("1e5", str, "x must be a word of [A-Za-z0-9_.+-]; got '1e5'. Give x as str."),
            ("", str, "x must be a word of [A-Za-z0-9_.+-]; got ''. Give x as str."),
            (True, (float, str), "x must be a number or a word of [A-Za-z0-9_.+-]; got True. Give x as float or str."),
        ],
    )
    def test_values_that_do_not(self, value, kind, words):
        with pytest.raises(OptionError) as caught:
            typed("who", "x", value, kind)
        assert str(caught.value) == f"who: {words}"

    def test_a_number_too_large_for_a_float(self):
        with pytest.raises(OptionError, match="x must be a number; got 1000"):
            typed("who", "x", 10**400, float)
        with pytest.raises(OptionError, match="x must be a whole number; got 1000"):
            typed("who", "x", 10**400, int)
