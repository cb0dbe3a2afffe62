import gzip

import pytest

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.use.store.languages import ModelLanguages
from pipelines.sources.files import FileSource
from pipelines.sources.pair_files import check_pair_file, read_memory, read_pairs
from tests.refusals import refused

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
        with refused("train_pairs", path, about=" and ".join(languages)):
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
    assert source.survey().counts == {"train": 3, "test": 2}
    assert list(source.pairs("train")) == [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    assert list(source.pairs("test")) == [("two", "zwei"), ("three", "drei")]
    assert [list(part.pairs("train")) for part in source.parts("train")] == [
        [("one", "eins")],
        [("two", "zwei"), ("three", "drei")],
    ]
    settings = source.survey().settings
    assert list(settings) == [
        "dataset",
        "languages",
        "train_source",
        "train_target",
        "train_pairs",
        "test_pairs",
    ]
    assert settings["train_pairs"] == settings["test_pairs"]
    assert (
        FileSource(text, {}, ("en", "de")).survey().settings == FileSource(text).survey().settings
    )


def encoded_in(name):
    return f'<?xml version="1.0" encoding="{name}"?><tmx/>'


CZECH_MEMORY = MEMORY.format(encoding="utf-8").replace('"de"', '"cs"')
CUT_MEMORY = gzip.compress(MEMORY.encode(), mtime=0)[:-20]


@pytest.mark.parametrize(
    ("name", "content", "argument", "received", "place"),
    [
        ("a.tsv", "a\tb\nc", None, "1 in 'c'", "a.tsv:2"),
        ("a.tsv", "a\tb\tc", None, "3 in", "a.tsv:1"),
        ("a.tsv", b"a\tb\n\xff\tc", None, "byte 0xff at column 1", "a.tsv:2"),
        ("a.tsv", "\t\n", "train_pairs", "a.tsv, which has none", None),
        (
            "a.jsonl",
            '{"en": "a", "de": "b"}\n{"en": "a\\u0000b", "de": "c"}',
            None,
            "NUL",
            "a.jsonl:2",
        ),
        ("a.jsonl", "{", None, "line 1 column 2", "a.jsonl:1"),
        ("a.jsonl", '{"en": "a"}', None, '{"en": "a"}', "a.jsonl:1"),
        ("a.jsonl", "[" * 100_000, None, "recursion", "a.jsonl:1"),
        (
            "a.jsonl",
            '{"en": "a", "de": "b"}\n{"en": "\\ud83d", "de": "c"}',
            None,
            "'\\ud83d'",
            "a.jsonl:2",
        ),
        ("a.tmx", "<tmx>\n<tu>", None, "line 2, column 4", "a.tmx:2"),
        ("a.tmx", encoded_in("shift_jis"), None, "multi-byte", "a.tmx"),
        ("a.tmx", encoded_in("klingon"), None, "klingon", "a.tmx"),
        ("a.tmx", "<xliff/>", None, "<xliff>", "a.tmx"),
        ("a.tmx", CZECH_MEMORY, "train_pairs", "a.tmx, which has none", None),
        ("a.tmx.gz", CUT_MEMORY, "train_pairs", "a.tmx.gz", None),
        ("a.po", b"\xff", None, "byte 0xff at column 1", "a.po:1"),
        ("a.po", "hello\n", None, "'hello'", "a.po:1"),
        ("a.xliff", "<xliff>", None, "no element", "a.xliff:1"),
        ("a.txt", "a", "train_pairs", "a.txt", None),
    ],
)
def test_files_that_cannot_be_read_end_in_one_line(
    tmp_path, name, content, argument, received, place
):
    with refused(argument, received, place) as error:
        pairs_of(tmp_path / name, content)
    assert "\n" not in str(error.value)


def test_memories_of_one_direction_and_of_several(tmp_path):
    file = tmp_path / "a.tmx"
    file.write_text(MEMORY.format(encoding="utf-8"))
    both = (Direction("en", "de"), Direction("de", "en"), Direction("en", "cs"))
    assert read_memory(str(file), "memory", both[:1]) == dict(MEMORY_PAIRS)
    several = ModelLanguages(both, ("de", "en", "cs"), has_codes=True)
    memory = read_memory(str(file), "memory", both, several.coded)
    wanted = {f">>de<< {source}": target for source, target in MEMORY_PAIRS}
    assert memory == wanted | {f">>en<< {target}": source for source, target in MEMORY_PAIRS}
    with refused("memory", "a.tmx, which has none", about="en-cs"):
        read_memory(str(file), "memory", both[2:])
    with_sources = several._replace(coded_sources=("en",))
    wanted = {f">>de<< >>en<< {source}": target for source, target in MEMORY_PAIRS}
    assert read_memory(str(file), "memory", both[:1], with_sources.coded) == wanted


def test_memories_for_models_of_unknown_languages(tmp_path):
    (tmp_path / "a.tsv").write_text("two\tzwei\none\teins\ntwo\tZwei\n")
    wanted = {"two": "Zwei", "one": "eins"}
    assert read_memory(str(tmp_path / "a.tsv"), "memory", ()) == wanted
    with refused("memory", "a.tmx", about=".tsv"):
        read_memory("a.tmx", "memory", ())


def test_files_of_both_sides_need_languages(tmp_path):
    (tmp_path / "b.tsv").write_text("two\tzwei\n")
    with refused("source_language", "none"):
        FileSource({}, {"train": [str(tmp_path / "b.tsv")]})
    with refused("train_source", "neither"):
        FileSource({"test": ([str(tmp_path / "b.tsv")], [str(tmp_path / "b.tsv")])})
