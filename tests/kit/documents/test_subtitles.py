import random
import re

import pytest

from keras_transformer.kit.documents.formats import read_document
from tests.kit.documents.doubles import documents, with_words_reversed
from tests.kit.documents.filling import filled
from tests.refusals import refused

FILM = """\
1
00:00:01,000 --> 00:00:02,500 X1:10
Hello. He has seen
the man

2
00:00:02,600 --> 00:00:04,000
who lived in the house,
Ben said. Nobody knew.

3
00:00:05,000 --> 00:00:06,000
- Who?
-I do not know.

4
00:00:07,000 --> 00:00:08,000
♪♪

5
00:00:09,000 --> 00:00:10,000
{\\an8}<i>The dog & the
cat</i>
6
00:00:11,000 --> 00:00:12,000
{\\an8}<i>sleep.</i>
"""


def texts_of(text, format="srt"):
    document = read_document(text, format, "en")
    assert document.source == text
    return [segment.text for segment in document.segments]


def test_lines_and_cues_of_a_sentence_are_one_segment():
    wanted = [
        "Hello. He has seen the man who lived in the house, Ben said. Nobody knew.",
        "Who?",
        "I do not know.",
        "The dog & the cat sleep.",
    ]
    assert texts_of(FILM) == wanted
    assert texts_of(FILM.replace("\n", "\r\n")) == wanted
    assert texts_of(FILM.replace("\n", "\r")) == wanted
    film = f"WEBVTT\n\n{FILM}".replace("\n", "\r")
    assert "WHO LIVED" in filled(read_document(film, "vtt", "en"))
    assert texts_of(FILM.replace("\n\n", "\n \t\n")) == wanted, "lines with spaces alone"
    assert filled(read_document(FILM, "srt", "en"), str).count("-->") == 4


def test_a_translation_is_divided_over_its_cues():
    found = with_words_reversed(read_document(FILM, "srt", "en"))
    wanted = """\
1
00:00:01,000 --> 00:00:02,500 X1:10
. HELLO . SAID BEN
, HOUSE

2
00:00:02,600 --> 00:00:04,000
THE IN LIVED WHO MAN THE
SEEN HAS HE . KNEW NOBODY

3
00:00:05,000 --> 00:00:06,000
- ? WHO
-. KNOW NOT DO I

4
00:00:07,000 --> 00:00:08,000
♪♪

5
00:00:09,000 --> 00:00:10,000
{\\an8}<i>. SLEEP CAT
THE &</i>
6
00:00:11,000 --> 00:00:12,000
{\\an8}<i>DOG THE</i>
"""
    assert found == wanted


ITALIC = """\
WEBVTT - <i>kept</i>

STYLE
::cue(b) { color: red }

NOTE kept, as it is
no cue

intro
00:01.000 --> 00:02.000 position:10%,line-left
<v Ann><i>Fish &amp; chips</i>
<i>that we</i>

00:03.000 --> 00:04.000
<i>had <b>yesterday</b> at sea</i>
"""


def test_tags_settings_and_notes_survive():
    assert texts_of(ITALIC, "vtt") == ["Fish & chips that we had yesterday at sea"]
    found = with_words_reversed(read_document(ITALIC, "vtt", "en"))
    start = ITALIC.index("<i>Fish")
    assert found.startswith(ITALIC[:start])
    assert (
        found[start:]
        == """\
<i>SEA AT <b>YESTERDAY</b></i>
<i>HAD WE</i>

00:03.000 --> 00:04.000
<i>THAT CHIPS &amp; FISH</i>
"""
    )


def test_a_voice_and_a_position_stay_before_their_cue():
    for sign in ("<v Ann>", "{\\an8}"):
        text = f"1\n00:01 --> 00:02\n{sign}He saw the\n\n2\n00:03 --> 00:04\n{sign}old man.\n"
        found = translated_as(text, "Er sah den alten Mann.")
        assert found == text.replace("He saw the", "Er sah den").replace("old man", "alten Mann")


def translated_as(text, words):
    """Translates every sentence of subtitles into the same words."""
    document = read_document(text, "srt", "en")
    return "".join(documents(lambda text: words).translate(document.parts))


def test_no_line_is_empty_within_a_cue_where_a_translation_is_short():
    text = "1\n00:01 --> 00:02\na\nb\n\n2\n00:03 --> 00:04\nc\nd\n"
    found = translated_as(text, "Ja")
    assert found == "1\n00:01 --> 00:02\nJa\n\n\n2\n00:03 --> 00:04\n\n"


@pytest.mark.parametrize("count", [60, pytest.param(900, marks=pytest.mark.slow)])
def test_times_stay_in_their_order(count):
    rng = random.Random(1)
    words = ["<i>the", "dog</i>", "a", "<b>cat</b>", "sleeps.", "and", "I", "house,", "\n"]
    for _ in range(count):
        cues = [
            f"{number}\n00:00:0{number} --> 00:00:0{number}\n"
            + re.sub(r"\s*\n\s*", "\n", " ".join(rng.choices(words, k=rng.randint(1, 9)))).strip()
            for number in range(1, 6)
        ]
        text = "\n\n".join(cues)
        for found in (
            with_words_reversed(read_document(text, "srt", "en")),
            translated_as(text, "Hund und Katze"),
        ):
            assert re.findall(r"\d\n.*-->.*\n", found) == re.findall(r"\d\n.*-->.*\n", text)
            blocks = re.split(r"\n\n+(?=\d\n)", found)
            assert all("\n\n" not in block.rstrip("\n") for block in blocks), found


def test_what_is_no_subtitles_is_refused():
    for text in ("{1}{25}Hello\n", "Hello"):
        with refused(None, "none", place="the document", about="cues"):
            texts_of(text)
    assert texts_of("") == texts_of("\ufeffWEBVTT\n", "vtt") == []
