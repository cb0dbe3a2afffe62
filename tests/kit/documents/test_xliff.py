import pytest

from keras_transformer.kit.documents.text.xliff import read, units
from keras_transformer.kit.documents.tree.segments import MarkKind
from tests.kit.documents.filling import filled
from tests.kit.documents.trees import marks_in
from tests.refusals import refused

UNITS = """<?xml version='1.0' encoding="UTF-8"?>
<!-- kept -->
<xliff version="1.2"><file source-language="en" ><body>
 <trans-unit id="1"><source>A <g id="1">big</g> cat<x id="2" a=">"/> &amp; é</source></trans-unit>
 <trans-unit id="2"><source>Done</source><target>Fertig</target></trans-unit>
 <group translate="no"><trans-unit id="3"><source>Lock</source><target/></trans-unit></group>
 <trans-unit id="4"><source>in <ph id="1">{code}</ph>here</source>
   <target state="new"/></trans-unit>
 <trans-unit id="5"><source> </source><target></target></trans-unit>
</body></file></xliff>
"""


def test_units_without_a_translation_are_filled_and_no_other_byte_changes():
    wanted = UNITS.replace("é</source>", "é</source><target>A BIG CAT &amp; É</target>").replace(
        '<target state="new"/>', '<target state="new">IN HERE</target>'
    )
    assert filled(read(UNITS, "en")) == wanted


PREFIXED = "<x:xliff xmlns:x='x'><x:trans-unit><x:source>a</x:source>{}</x:trans-unit></x:xliff>"
TARGET = "<xliff><trans-unit><source>cat</source>{}</trans-unit></xliff>"
SEGMENTED = (
    "<xliff><trans-unit><source>A cat</source>{}"
    "<alt-trans><seg-source>O</seg-source></alt-trans></trans-unit></xliff>"
)
SECOND = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0"><file id="f"><unit id="1">'
    '<segment><source>Hello <pc id="1">you</pc></source>{}</segment></unit></file></xliff>'
)
LOCKED = (
    '<xliff><group translate="no"><trans-unit translate="yes"><source>cat</source>{}</trans-unit>'
    "<trans-unit><source>cat</source></trans-unit></group></xliff>"
)
CODE = ["Katze", '<x id="1"/>', "<g></g>", "<!-- the animal -->"]


@pytest.mark.parametrize(
    ("around", "before", "after"),
    [
        (PREFIXED, "", "<x:target>A</x:target>"),
        (PREFIXED, "<x:target state='new'/>", "<x:target state='new'>A</x:target>"),
        *[
            (SEGMENTED, source, f"{source}<target>A CAT</target>")
            for source in ("<seg-source/>", "<seg-source>A <mrk>cat</mrk></seg-source>")
        ],
        (SECOND, "", "<target>HELLO YOU</target>"),
        (LOCKED, "", "<target>CAT</target>"),
        # Only an empty target is replaced.
        (TARGET, "<target> </target>", "<target>CAT</target>"),
        (TARGET, '<target><mrk mid="1"/> <mrk mid="2"></mrk></target>', "<target>CAT</target>"),
        *[(TARGET, f"<target>{code}</target>", f"<target>{code}</target>") for code in CODE],
    ],
)
def test_where_the_translation_comes(around, before, after):
    assert filled(read(around.format(before), "en")) == around.format(after)


OLD = "<source>Old</source><seg-source>O</seg-source><target>Alt</target>"
SUGGESTIONS = [
    *["<alt-trans><target/></alt-trans>", f"<alt-trans>{OLD}</alt-trans>"],
    f"<x:matches xmlns:x='x'><x:match>{OLD}</x:match></x:matches>",
]


@pytest.mark.parametrize("suggestion", SUGGESTIONS)
@pytest.mark.parametrize("tag", ["trans-unit", "segment"])
@pytest.mark.parametrize("target", ["", "<target/>"])
def test_a_suggestion_is_neither_the_source_nor_the_target_of_its_unit(tag, target, suggestion):
    source = "<source>A <g>cat</g></source>"
    for content in (f"{source}{target}{suggestion}", f"{suggestion}{source}{target}"):
        text = f"<xliff><{tag}>{content}</{tag}></xliff>"
        wanted = text.replace(source + target, f"{source}<target>A CAT</target>")
        assert filled(read(text, "en")) == wanted
        text = text.replace(source + target, f"{source}<target>Eine <g>Katze</g></target>")
        assert [(unit.source.text, unit.target) for unit in units(text)] == [
            ("A cat", "Eine Katze")
        ]
        assert read(text, "en").segments == []


def test_tags_within_a_source_are_marks():
    first, second = read(UNITS, "en").segments
    assert [(mark.source, mark.start, mark.kind) for mark in marks_in(first)] == [
        ('<g id="1">', 2, MarkKind.OPEN),
        ("</g>", 5, MarkKind.CLOSE),
        ('<x id="2" a=">"/>', 9, MarkKind.WHOLE),
    ]
    assert [(mark.source, mark.start) for mark in marks_in(second)] == [
        ('<ph id="1">{code}</ph>', 3),
    ]


def test_units_have_both_sides():
    found = [(unit.source.text, unit.target, unit.is_locked) for unit in units(UNITS)]
    assert found == [
        ("A big cat & é", "", False),
        ("Done", "Fertig", False),
        ("Lock", "", True),
        ("in here", "", False),
        (" ", "", False),
    ]


# Each entity repeats the previous one ten times: 1e9 letters.
ENTITIES = [f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9)]
BOMB = f'<!DOCTYPE x [<!ENTITY e0 "aaaaaaaaaa">{"".join(ENTITIES)}'


@pytest.mark.parametrize(
    ("content", "place", "received", "about"),
    [
        ("", "line 1", "no element found", "XML"),
        ("<xliff>\n<trans-unit></xliff>", "line 2", "mismatched tag", "XML"),
        ("<tmx/>", "the document", "<tmx>", "<xliff>"),
        ("\0", "line 1", "", "XML"),
        (f"{BOMB}]><xliff>&e8;</xliff>", "line 1", "e0", "entities"),
        ('<!DOCTYPE x [\n<!ENTITY file SYSTEM "file">]><xliff/>', "line 2", "file", "entities"),
    ],
)
def test_what_is_no_xliff_ends_in_one_line(content, place, received, about):
    with refused(None, received, place, about):
        read(content, "en")


@pytest.mark.parametrize("attribute", ['translate="no"', 'mtype="protected"'])
def test_protected_words_are_a_mark_that_reads_as_they_do(attribute):
    name = f"<mrk {attribute}>Big <g>Cat</g><x/></mrk>"
    text = f"<xliff><segment><source>The {name} <mrk>runs</mrk></source></segment></xliff>"
    (segment,) = read(text, "en").segments
    assert segment.text == "The Big Cat runs"
    assert [(mark.source, mark.start, mark.end, mark.kind) for mark in marks_in(segment)] == [
        (name, 4, 11, MarkKind.WHOLE),
        ("<mrk>", 12, 12, MarkKind.OPEN),
        ("</mrk>", 16, 16, MarkKind.CLOSE),
    ]
