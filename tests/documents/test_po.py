import polib
import pytest

from keras_transformer.documents.po import entries, read
from keras_transformer.errors import InputError
from tests.documents.filling import filled

CATALOGUE = r"""# Translators
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
#, c-format
msgctxt "menu"
msgid ""
"The %s said \"no\"\n"
"and\tleft"
msgstr ""

msgid "a file"
msgid_plural "many files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "a guess"
msgstr "geraten"

msgid "done"
msgstr ""
"fertig"

#~ msgid "old"
#~ msgstr ""
"""
FILLED = (
    CATALOGUE.replace(r'''and\tleft"
msgstr ""''', r'''and\tleft"
msgstr "THE %S SAID \"NO\"\nAND\tLEFT"''')
    .replace('msgstr[0] ""', 'msgstr[0] "A FILE"')
    .replace('msgstr[1] ""', 'msgstr[1] "MANY FILES"')
)  # fmt: skip


def test_entries_without_a_translation_are_filled_and_no_other_byte_changes():
    assert filled(read(CATALOGUE, "en")) == FILLED
    by_message = {entry.msgid: entry for entry in polib.pofile(FILLED)}
    assert by_message['The %s said "no"\nand\tleft'].msgstr == 'THE %S SAID "NO"\nAND\tLEFT'
    assert by_message["a file"].msgstr_plural == {0: "A FILE", 1: "MANY FILES"}


def test_line_ends_of_windows():
    catalogue = CATALOGUE.replace("\n", "\r\n")
    assert filled(read(catalogue, "en")) == FILLED.replace("\n", "\r\n")


def test_a_plural_whose_first_form_is_translated_stays():
    catalogue = 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] ""\n'
    assert filled(read(catalogue, "en")) == catalogue


def test_what_is_written_in_restructuredtext_is_a_mark():
    message = "See :ref:`the guide <guide>`, ``x = 1``, `link`_ and |version|."
    (segment,) = read(f'msgid "{message}"\nmsgstr ""\n', "en").segments
    assert segment.text == message
    marked = [message[mark.start : mark.end] for mark in segment.marks]
    assert marked == [":ref:`the guide <guide>`", "``x = 1``", "`link`_", "|version|"]


def test_entries_say_where_they_are():
    found = [(entry.line, entry.source, entry.target) for entry in entries(CATALOGUE)]
    assert found == [
        (6, 'The %s said "no"\nand\tleft', ""),
        (14, "a file", ""),
        (19, "a guess", "geraten"),
        (23, "done", "fertig"),
    ]


@pytest.mark.parametrize(
    ("catalogue", "received"),
    [
        ('msgid "a"\nmsgstr "b" x\n', r"\(line 2\): unescaped double quote found"),
        ("hello\n", r"\(line 1\)"),
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', r"\(line 2\)"),
        ('msgid "a\nmsgstr "b"\n', "must have as many entries. Received: 0"),
    ],
)
def test_syntax_errors_end_in_one_line(catalogue, received):
    with pytest.raises(InputError, match=received):
        read(catalogue, "en")
