import gzip

import pytest

from keras_transformer.errors import InputError
from pipelines.pair_files import check_pair_file, read_pairs
from pipelines.sources import FileSource

MEMORY = """<?xml version="1.0" encoding="{encoding}"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="EN-gb"><seg>The <bpt i="1">&lt;b&gt;</bpt>big<ept i="1">&lt;/b&gt;</ept>
 <hi>cat</hi>.</seg></tuv><tuv xml:lang="de"><seg>Die große Katze.</seg></tuv></tu>
<tu><tuv xml:lang="fr"><seg>Non</seg></tuv><tuv xml:lang="de"><seg>Nein</seg></tuv></tu>
<tu><tuv lang="de"><seg>Ja</seg></tuv><tuv lang="en"><seg>Yes</seg></tuv></tu>
</body></tmx>
"""
MEMORY_PAIRS = [("The big cat.", "Die große Katze."), ("Yes", "Ja")]


def pairs_of(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    check_pair_file(str(path), "train_pairs")
    return list(read_pairs(str(path), "train_pairs", ("en", "de")))


def test_tables(tmp_path):
    table = "a cat\teine  Katze\r\n\tx\nyes\tja"
    wanted = [("a cat", "eine Katze"), ("yes", "ja")]
    assert pairs_of(tmp_path / "a.tsv", table) == wanted
    assert pairs_of(tmp_path / "a.TSV.gz", gzip.compress(table.encode())) == wanted


def test_lines_of_json(tmp_path):
    lines = '{"en": "a\\ncat", "de": "K"}\n{"translation": {"de": "ja", "en": "yes", "fr": "o"}}'
    assert pairs_of(tmp_path / "a.jsonl", lines) == [("a cat", "K"), ("yes", "ja")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_translation_memories(tmp_path, encoding):
    memory = MEMORY.format(encoding=encoding).encode(encoding)
    assert pairs_of(tmp_path / "a.tmx", memory) == MEMORY_PAIRS


def test_catalogues(tmp_path):
    catalogue = """msgid ""
msgstr "Language: de"

msgid "a cat"
msgstr "eine "
"Katze"

msgid "none"
msgstr ""

#, fuzzy
msgid "a guess"
msgstr "geraten"

msgid "file"
msgid_plural "files"
msgstr[0] "Datei"
msgstr[1] "Dateien"
"""
    assert pairs_of(tmp_path / "a.po", catalogue) == [("a cat", "eine Katze")]


def test_xliff(tmp_path):
    units = """<xliff version="1.2"><file><body>
<trans-unit id="1"><source>a <g id="1">cat</g></source><target>eine Katze</target></trans-unit>
<trans-unit id="2"><source>none</source><target/></trans-unit></body></file></xliff>"""
    assert pairs_of(tmp_path / "a.xlf", units) == [("a cat", "eine Katze")]
    suggestion = "<alt-trans><source>cats</source><target>Katzen</target></alt-trans>"
    units = units.replace("</trans-unit>", f"{suggestion}</trans-unit>")
    assert pairs_of(tmp_path / "a.xlf", units) == [("a cat", "eine Katze")]


XLIFF = "<xliff{}><file{}><{}><source>a cat</source><target>eine Katze</target></{}></file></xliff>"


@pytest.mark.parametrize("languages", [("en", "de"), ("de", "en")])
def test_languages_of_xliff(tmp_path, languages):
    first = XLIFF.format("", ' source-language="{}" target-language="{}"', *["trans-unit"] * 2)
    second = XLIFF.format(' srcLang="{}" trgLang="{}"', "", *["segment"] * 2)
    for text in (first, second):
        path = tmp_path / "a.xliff"
        path.write_text(text.format("en-US", "de"))
        pairs = [("a cat", "eine Katze")]
        wanted = pairs if languages == ("en", "de") else [pair[::-1] for pair in pairs]
        assert list(read_pairs(str(path), "train_pairs", languages)) == wanted
        path.write_text(text.format("en", "cs"))
        with pytest.raises(InputError, match=r"must have pairs of .* which has none"):
            list(read_pairs(str(path), "train_pairs", languages))


def test_xliff_of_one_language_keeps_its_sides(tmp_path):
    text = XLIFF.format("", ' source-language="en" target-language="en"', *["trans-unit"] * 2)
    (tmp_path / "a.xlf").write_text(text)
    pairs = read_pairs(str(tmp_path / "a.xlf"), "train_pairs", ("en", "en"))
    assert list(pairs) == [("a cat", "eine Katze")]


def test_documents_are_read_in_the_encoding_that_they_declare(tmp_path):
    catalogue = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n'
        'msgid "a door"\nmsgstr "eine Tür"\n'
    )
    assert pairs_of(tmp_path / "a.po", catalogue.encode("latin-1")) == [("a door", "eine Tür")]
    units = """<?xml version="1.0" encoding="UTF-16"?><xliff><trans-unit>
<source>a door</source><target>eine Tür</target></trans-unit></xliff>"""
    assert pairs_of(tmp_path / "a.xlf", units.encode("utf-16")) == [("a door", "eine Tür")]


def test_files_of_both_sides_follow_those_of_one(tmp_path):
    (tmp_path / "a.en").write_text("one\n")
    (tmp_path / "a.de").write_text("eins\n")
    (tmp_path / "b.tsv").write_text("two\tzwei\nthree\tdrei\n")
    text = {"train": ([str(tmp_path / "a.en")], [str(tmp_path / "a.de")])}
    pairs = {"train": [str(tmp_path / "b.tsv")], "test": [str(tmp_path / "b.tsv")]}
    source = FileSource(text, pairs, ("en", "de"))
    assert source.counts() == {"train": 3, "test": 2}
    assert list(source.pairs("train")) == [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    assert list(source.pairs("test")) == [("two", "zwei"), ("three", "drei")]
    assert [list(part.pairs("train")) for part in source.parts("train")] == [
        [("one", "eins")],
        [("two", "zwei"), ("three", "drei")],
    ]
    settings = source.settings()
    assert list(settings) == [
        "dataset",
        "languages",
        "train_source",
        "train_target",
        "train_pairs",
        "test_pairs",
    ]
    assert settings["train_pairs"] == settings["test_pairs"]
    assert FileSource(text, {}, ("en", "de")).settings() == FileSource(text).settings()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "a\tb\nc", r"a.tsv:2 must have two columns .* Received: 1 in 'c'"),
        ("a.tsv", "a\tb\tc", r"a.tsv:1 must have two columns .* Received: 3 in"),
        ("a.tsv", b"a\tb\n\xff\tc", r"a.tsv:2 must be UTF-8"),
        ("a.tsv", "\t\n", r"train_pairs must have pairs of en and de. Received: .*which has none"),
        (
            "a.jsonl",
            '{"en": "a", "de": "b"}\n{"en": "a\\u0000b", "de": "c"}',
            r"a.jsonl:2 must be text. Received: a NUL character",
        ),
        ("a.jsonl", "{", r"a.jsonl:1 must be readable JSON"),
        ("a.jsonl", '{"en": "a"}', r"a.jsonl:1 must have texts under 'en' and 'de'"),
        ("a.jsonl", "[" * 100_000, r"a.jsonl:1 must be readable JSON"),
        (
            "a.jsonl",
            '{"en": "a", "de": "b"}\n{"en": "\\ud83d", "de": "c"}',
            r"a.jsonl:2 must be readable JSON. Received: .*'\\ud83d'.*surrogates not allowed",
        ),
        ("a.tmx", "<tmx>\n<tu>", r"a.tmx:2 must be well-formed XML"),
        (
            "a.tmx",
            '<?xml version="1.0" encoding="shift_jis"?><tmx/>',
            r"a.tmx must be XML in UTF-8, or in another encoding that can be read\. Received: ",
        ),
        (
            "a.tmx",
            '<?xml version="1.0" encoding="klingon"?><tmx/>',
            r"a.tmx must be XML in UTF-8, or in another encoding that can be read\. Received: ",
        ),
        ("a.tmx", "<xliff/>", r"a.tmx must be a translation memory, <tmx>. Received: <xliff>"),
        ("a.tmx", MEMORY.format(encoding="utf-8").replace('"de"', '"cs"'), "which has none"),
        ("a.tmx.gz", gzip.compress(MEMORY.encode())[:-20], "train_pairs must be a whole file"),
        ("a.po", b"\xff", r"^[^:]*a.po:1 must be UTF-8. Received: byte 0xff at column 1$"),
        ("a.po", "hello\n", r"a.po: a catalogue must be one of gettext. Received: \(line 1\)"),
        ("a.xliff", "<xliff>", r"a.xliff: an XLIFF file must be well-formed XML"),
        ("a.txt", "a", r"train_pairs must be files that end in .tsv, .jsonl, .tmx, .po, .xliff"),
    ],
)
def test_files_that_cannot_be_read_end_in_one_line(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        pairs_of(tmp_path / name, content)


def test_files_of_both_sides_need_languages(tmp_path):
    (tmp_path / "b.tsv").write_text("two\tzwei\n")
    rule = "source_language and target_language must be given with train_pairs. Received: none"
    with pytest.raises(InputError, match=rule):
        FileSource({}, {"train": [str(tmp_path / "b.tsv")]})
    with pytest.raises(InputError, match="train_source or train_pairs must be given"):
        FileSource({"test": ([str(tmp_path / "b.tsv")], [str(tmp_path / "b.tsv")])})
