"""Changing translation memories: what changes, and what stays."""

import pytest

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.memory.tmx import Tmx, empty_memory
from tests.refusals import refused

ENGLISH_GERMAN = Direction("en", "de")
MEMORY = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang='en'><note>mine</note></header><body>
  <!-- from a project -->
  <tu tuid="1" changedate="20200101T000000Z"><note>check</note>
    <tuv xml:lang="EN-gb"><seg>The <bpt i="1">&lt;b&gt;</bpt>big<ept i="1">&lt;/b&gt;</ept>
      <hi>cat</hi> &amp; dog.</seg></tuv>
    <tuv xml:lang="de_AT" creationdate="20190101T000000Z"><seg>Die große Katze.</seg></tuv>
    <tuv xml:lang="fr"><seg>Le gros chat.</seg></tuv></tu>
  <tu><tuv xml:lang="fr"><seg>Non</seg></tuv><tuv xml:lang="de"><seg>Nein</seg></tuv></tu>
  <tu><tuv lang="de"><seg>Ja</seg></tuv><tuv lang="en"><seg>Yes</seg></tuv></tu>
  <tu><tuv xml:lang="en"><seg>Blank</seg></tuv><tuv xml:lang="de"><seg> </seg></tuv></tu>
</body></tmx>
"""
CAT = "The big cat & dog."


def pairs(text, direction=ENGLISH_GERMAN):
    return [(unit.source, unit.target) for unit in Tmx(text).units(direction)]


def test_units_of_two_languages():
    cat, yes = Tmx(MEMORY).units(ENGLISH_GERMAN)
    assert (cat.source, cat.target, cat.date) == (CAT, "Die große Katze.", "20190101T000000Z")
    assert (yes.source, yes.target, yes.date) == ("Yes", "Ja", "")
    assert pairs(MEMORY, Direction("de", "en")) == [("Die große Katze.", CAT), ("Ja", "Yes")]
    assert pairs(MEMORY, Direction("cs", "en")) == []


def test_a_new_unit_is_the_last_one_and_nothing_else_changes():
    text = Tmx(MEMORY).with_unit('"A" <dog> & more', "Ein 😀", ENGLISH_GERMAN)
    assert pairs(text) == [*pairs(MEMORY), ('"A" <dog> & more', "Ein 😀")]
    kept, _, end = MEMORY.rpartition("\n</body>")
    assert text.startswith(f'{kept}\n    <tu srclang="en">') and text.endswith(
        f"</tu>\n  </body>{end}"
    )


def test_a_changed_unit_keeps_its_notes_and_languages_and_becomes_the_last_one():
    memory = Tmx(MEMORY)
    text = memory.with_translation(memory.units(ENGLISH_GERMAN)[0], "Die dicke Katze.")
    assert pairs(text) == [("Yes", "Ja"), (CAT, "Die dicke Katze.")]
    french = [("Non", "Nein"), ("Le gros chat.", "Die dicke Katze.")]
    assert pairs(text, Direction("fr", "de")) == french
    assert Tmx(text).units(ENGLISH_GERMAN)[1].date > "2026"
    for part in (
        '<tu tuid="1" changedate="20200101T000000Z"><note>check</note>',
        'xml:lang="de_AT"',
    ):
        assert text.count(part) == 1
    assert "<!-- from a project -->" in text and "große" not in text


def test_what_is_removed_leaves_other_languages():
    memory = Tmx(MEMORY)
    cat, yes = memory.units(ENGLISH_GERMAN)
    text = memory.without([cat, yes])
    assert pairs(text) == []
    assert pairs(text, Direction("en", "fr")) == [(CAT, "Le gros chat.")]
    assert "Yes" not in text and text.count("<tu>") == 2
    assert memory.without([]).split() == MEMORY.split()


def test_a_new_memory():
    assert pairs(empty_memory(["en"])) == []
    text = Tmx(empty_memory(["en"])).with_unit("A", "B", ENGLISH_GERMAN)
    assert pairs(text) == [("A", "B")] and 'adminlang="en" srclang="en"' in text
    assert pairs(text, Direction("de", "en")) == [], "it names its direction"
    assert 'srclang="*all*"' in empty_memory(["en", "fr"])


@pytest.mark.parametrize(
    ("text", "received", "place"),
    [
        ("<tmx><body>", "no element found", "line 1"),
        ("<xliff/>", "<xliff>", "the document"),
        ("<tmx><header/></tmx>", "none", "the document"),
    ],
)
def test_other_files(text, received, place):
    with refused(None, received, place=place):
        Tmx(text)
