"""Nothing from outside can forge a line of a log or move a terminal's cursor."""

import string
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from fedpcs._outside import MOST_SHOWN, printable

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=400)


@given(ANY_TEXT)
def test_what_is_shown_is_one_short_line_of_plain_characters(text):
    shown = printable(text)
    assert len(shown) <= MOST_SHOWN
    assert not {unicodedata.category(one) for one in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    shown.encode("utf-8")


@given(st.text(string.ascii_letters + "éρ字 ", max_size=MOST_SHOWN))
def test_plain_text_is_shown_as_it_is(text):
    assert printable(text) == text


def test_the_space_before_a_per_cent_sign_stays():
    assert printable("39.4\N{NO-BREAK SPACE}%") == "39.4\N{NO-BREAK SPACE}%"


def test_escape_codes_and_marks_that_turn_the_line_are_spelled_out():
    assert printable("a\x1b[31mb\u202ec\ud800\r") == r"a\x1b[31mb\u202ec\ud800\r"
