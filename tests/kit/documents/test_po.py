import re

import polib
import pytest

from keras_transformer.kit.documents.text.po import Entry, entries, read
from keras_transformer.kit.documents.tree.placeholders import with_placeholders
from tests.kit.documents.doubles import (
    with_words_reversed,
)
from tests.kit.documents.filling import filled
from tests.kit.documents.trees import marks_in
from tests.refusals import refused

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


def in_windows(catalogue):
    return catalogue.replace("\n", "\r\n")


def with_spaces(catalogue):
    return catalogue.replace("msg", "\t msg").replace('"\n', '" \n')


PLURAL = 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "{}"\n'
LAST = '\nmsgid "x"\n\nmsgstr "{}"'


@pytest.mark.parametrize(
    ("catalogue", "wanted"),
    [
        (in_windows(CATALOGUE), in_windows(FILLED)),
        (with_spaces(CATALOGUE) + LAST.format(""), with_spaces(FILLED) + LAST.format("X")),
        # The first form of a plural is translated; it has one form; forms have several lines.
        (PLURAL.format("x") + 'msgstr[1] ""\n', PLURAL.format("x") + 'msgstr[1] ""\n'),
        (PLURAL.format(""), PLURAL.format("B")),
        (
            PLURAL.format("") + '""\n\nmsgstr[1]""\n\n# c\n',
            PLURAL.format("A") + '""\n\nmsgstr[1]"B"\n\n# c\n',
        ),
    ],
)
def test_forms_of_entries(catalogue, wanted):
    assert filled(read(catalogue, "en")) == wanted


@pytest.mark.parametrize(("flag", "found"), [("", ["%s"]), ("#, c-format, x\n", ["%s", "%s"])])
def test_in_a_format_all_conversions_are_placeholders(flag, found):
    catalogue = f'{flag}msgid "Dogs%s and 100%s"\nmsgstr ""\n'
    (segment,) = read(catalogue, "en").segments
    assert [mark.mark.text for mark in marks_in(with_placeholders(segment))] == found


def test_what_is_written_in_restructuredtext_is_a_mark():
    message = "See :ref:`the guide <guide>`, ``x = 1``, `link`_ and |version|."
    (segment,) = read(f'msgid "{message}"\nmsgstr ""\n', "en").segments
    assert segment.text == message
    marked = [message[mark.start : mark.end] for mark in marks_in(segment)]
    assert marked == [":ref:`the guide <guide>`", "``x = 1``", "`link`_", "|version|"]


def test_entries_say_where_they_are():
    found = [(entry.line, entry.source, entry.target) for entry in entries(CATALOGUE)]
    assert found == [
        (6, 'The %s said "no"\nand\tleft', ""),
        (14, "a file", ""),
        (19, "a guess", "geraten"),
        (23, "done", "fertig"),
    ]


def facts(entry):
    """Returns the fields of an entry, either polib's or our reader's."""
    if isinstance(entry, Entry):
        return entry.source, entry.plural, entry.target, entry.is_fuzzy
    target = entry.msgstr or "".join(entry.msgstr_plural.values())
    return entry.msgid, entry.msgid_plural, target, entry.fuzzy


def check_against_polib(catalogue):
    wanted = [facts(entry) for entry in polib.pofile(catalogue) if not entry.obsolete]
    assert [facts(entry) for entry in entries(catalogue)] == wanted


def test_entries_are_those_of_polib():
    check_against_polib(CATALOGUE)
    check_against_polib(FILLED.replace("fertig", r"a\\n\n\"\t\x"))


@pytest.mark.parametrize("character", "\v\f\x1c\x85\u2028")
def test_lines_end_at_line_ends_only(character):
    catalogue = f'{character}\nmsgid "a{character}"\nmsgstr ""\n'
    (entry,) = entries(filled(read(catalogue, "en")))
    assert (entry.source, entry.target) == (f"a{character}", f"A{character}")


@pytest.mark.parametrize("ending", ["", "\n"])
def test_no_catalogue_is_the_path_of_a_file(ending, tmp_path, monkeypatch):
    path = tmp_path / f"catalogue.po{ending}"
    path.write_text('msgid "secret"\nmsgstr ""\n')
    monkeypatch.setattr("io.open", None)
    monkeypatch.setattr("builtins.open", None)
    for catalogue in (str(path), path.name):
        monkeypatch.chdir(tmp_path)
        with refused(None, repr(catalogue.splitlines()[0][:80]), place="line 1"):
            read(catalogue, "en")


@pytest.mark.parametrize(
    ("catalogue", "place", "received", "about"),
    [
        ('msgid "a"\nmsgstr "b" x\n', "line 2", 'msgstr "b" x', "quotes"),
        ('"a"\nmsgid "b"\nmsgstr ""\n', "line 1", '"a"', "gettext"),
        ("hello\n", "line 1", "'hello'", "gettext"),
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', "line 2", "'msgid \"b\"'", "gettext"),
        ('msgid "a\nmsgstr "b"\n', "line 1", 'msgid "a', "quotes"),
        ('msgid "a"\nmsgstr x\n', "line 2", "msgstr x", "quotes"),
        ('msgid "a"\nmsgstr "\n', "line 2", 'msgstr "', "quotes"),
        ('msgid "a"\n', "line 1", "none", "msgstr"),
        (f'{CATALOGUE}\n# Last\nmsgid ""\n"b"', "line 30", "none", "msgstr"),
        ('msgid "a"\n# b\nmsgid "b"\nmsgstr ""\n', "line 3", "'msgid \"b\"'", "gettext"),
        ("\0", "line 1", r"'\x00'", "gettext"),
    ],
)
def test_syntax_errors_end_in_one_line(catalogue, place, received, about):
    with refused(None, received, place, about):
        read(catalogue, "en")


def turned(catalogue):
    return with_words_reversed(read(catalogue, "en"))


CODE = re.compile(r"``.+?``|:\w+(?::\w+)*:`[^`]+`|%\(\w+\)s|%[sd]|\{\w*\}|<[^<>]+>", re.DOTALL)


def test_placeholders_and_roles_come_back_where_words_move():
    catalogue = r"""msgid "Open %(name)s in :ref:`the editor <ed>` and ``x``."
msgstr ""

msgid "Then press <b>Save now</b>, %s &amp; go"
msgstr ""

msgid "The file \"%s\" has {n} lines"
msgstr ""
"""
    first, second, third = polib.pofile(turned(catalogue))
    assert sorted(CODE.findall(first.msgstr)) == sorted(CODE.findall(first.msgid))
    assert "<b>NOW SAVE</b>" in second.msgstr.replace(",", "")
    assert "&amp;" in second.msgstr and "%s" in second.msgstr
    assert sorted(CODE.findall(third.msgstr)) == ["%s", "{n}"]


@pytest.mark.slow
def test_real_catalogues_keep_all_placeholders_and_roles(corpora):
    files = sorted((corpora / "documents" / "po" / "fr").glob("*.po"))
    assert len(files) == 4
    for file in files:
        check_against_polib(file.read_text(encoding="utf-8"))
        emptied = polib.pofile(str(file))
        for entry in emptied:
            entry.msgstr, entry.flags = "", [flag for flag in entry.flags if flag != "fuzzy"]
        done = polib.pofile(turned(str(emptied)))
        for entry in (entry for entry in done if not entry.obsolete):
            assert entry.msgstr
            found, wanted = CODE.findall(entry.msgstr), CODE.findall(entry.msgid)
            assert sorted(found) == sorted(wanted), entry.msgid
