import gzip
import os
import types
from pathlib import Path

import pytest
import tensorflow_datasets as tfds
from backports import zstd

import keras_transformer as kt
from pipelines.batches.data_set import DataSet
from pipelines.sources.files import FileSource
from pipelines.sources.text_files import matching_files, read_lines
from pipelines.sources.tfds_source import TfdsSource
from tests.refusals import refused


def write(path, content):
    path.write_bytes(content)
    return str(path)


def lines(path):
    return list(read_lines(path, "train_source"))


def source(train_source, train_target, **splits):
    return FileSource({"train": (train_source, train_target), **splits})


class TestLines:
    def test_only_line_feeds_end_lines(self, tmp_path):
        text = "a\u2028b\x85c\x0bd\x0ce\rf\r\n\n \u00a0g \nh".encode()
        assert lines(write(tmp_path / "text", text)) == [
            "a\u2028b\x85c\x0bd\x0ce\rf",
            "",
            " \u00a0g ",
            "h",
        ]

    def test_gzip_gives_the_same_lines_as_plain_text(self, tmp_path):
        text = "ein\nzwei ü\n".encode()
        assert lines(write(tmp_path / "t.gz", gzip.compress(text))) == ["ein", "zwei ü"]
        assert lines(write(tmp_path / "t", text)) == ["ein", "zwei ü"]

    def test_a_byte_order_mark_is_not_text(self, tmp_path):
        assert lines(write(tmp_path / "t", b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")) == ["a", "\ufeffb"]

    def test_zstandard(self, tmp_path):
        content = zstd.compress("ein\nzwei ü\n".encode() * 9)
        assert lines(write(tmp_path / "t.zst", content * 2)) == ["ein", "zwei ü"] * 18
        with refused("train_source", "t.zst, broken"):
            lines(write(tmp_path / "t.zst", content[:-5]))
        with refused("train_source", "line 0"):
            lines(write(tmp_path / "t.zst", b"plain\n" * 9))
        with refused("train_source", tmp_path / "t", about=".zst"):
            lines(write(tmp_path / "t", content))

    def test_patterns_name_files_in_order(self, tmp_path):
        for name in ("b.en", "a.en", "a[1].en", "c.de"):
            write(tmp_path / name, b"a\n")
        pattern, exact = str(tmp_path / "?.en"), str(tmp_path / "a[1].en")
        files = matching_files("train_source", [pattern, exact])
        assert [Path(path).name for path in files] == ["a.en", "b.en", "a[1].en"]
        with refused("train_source", tmp_path / "x*"):
            matching_files("train_source", [str(tmp_path / "x*")])

    @pytest.mark.parametrize(
        ("name", "content", "argument", "received", "place"),
        [
            ("t", b"a\nb\xff\n", None, "byte 0xff at column 2", "t:2"),
            ("t", "a\n".encode("utf-16-be"), None, "NUL character", "t:1"),
            ("t", b"a\n\x00\x01\n", None, "NUL character", "t:2"),
            ("t.gz", b"plain\n", "train_source", "t.gz, broken after line 0", None),
            ("t.gz", gzip.compress(b"x\n" * 9, mtime=0)[:-6], "train_source", "line 9", None),
            ("t.gz", gzip.compress(b"", mtime=0), "train_source", "t.gz", None),
            ("t", gzip.compress(b"x\n", mtime=0), "train_source", "t", None),
        ],
    )
    def test_files_that_are_not_text_are_named(
        self, tmp_path, name, content, argument, received, place
    ):
        path = write(tmp_path / name, content)
        with refused(argument, received, place) as error:
            lines(path)
        assert "\n" not in str(error.value)


class TestFiles:
    @pytest.fixture
    def parts(self, tmp_path):
        contents = {"1.en": b"a\nb\n", "2.en": b"c", "1.de": b"A\nB\n", "2.de": b"C\n"}
        return {name: write(tmp_path / name, content) for name, content in contents.items()}

    def test_files_of_a_split_follow_one_another(self, parts):
        both = source([parts["1.en"], parts["2.en"]], [parts["1.de"], parts["2.de"]])
        assert both.survey().counts == {"train": 3}
        assert list(both.pairs("train")) == [("a", "A"), ("b", "B"), ("c", "C")]
        assert both.languages == ("en", "de")

    @pytest.mark.parametrize("name", ["t.de", "t.de.gz", "1.t.de.zst"])
    def test_the_language_is_the_end_of_the_name(self, parts, tmp_path, name):
        found = source([parts["1.en"]], [write(tmp_path / name, b"read later")])
        assert found.languages == ("en", "de")

    def test_settings_tell_contents_apart(self, parts, tmp_path):
        copy = write(tmp_path / "other-name", b"a\nb\n")
        first = source([parts["1.en"]], [parts["1.de"]]).survey().settings
        assert source([copy], [parts["1.de"]]).survey().settings == first
        assert source([parts["2.en"]], [parts["2.de"]]).survey().settings != first

    def test_unequal_line_counts_are_named(self, parts):
        unequal = source([parts["1.en"]], [parts["2.de"]])
        with refused("train_target", f"2 in {parts['1.en']}, 1 in {parts['2.de']}"):
            unequal.survey()

    def test_a_file_that_is_its_own_translation_is_told_of(self, parts, tmp_path, caplog):
        source([parts["1.en"]], [parts["1.de"]])
        assert not caplog.text
        link = tmp_path / "link.de"
        link.symlink_to(parts["1.en"])
        source([parts["2.en"], parts["1.en"]], [parts["2.de"], str(link)])
        assert "train" in caplog.text and parts["1.en"] in caplog.text

    def test_sides_that_are_mostly_identical_are_told_of(self, tmp_path, caplog):
        english = write(tmp_path / "1.en", b"a cat\na dog\n\n7\n")
        german = write(tmp_path / "1.de", b"eine Katze\na dog\n\n7\n")  # half, and a blank pair
        source([english], [german]).survey()
        assert not caplog.text
        copy = write(tmp_path / "2.de", b"eine Katze\na dog\n\n7\n")
        source([german], [copy]).survey()
        assert "train are identical in 3 of 4 pairs" in caplog.text

    def test_unequal_numbers_of_files_are_named(self, parts):
        with refused("train_target", "1 for 2"):
            source([parts["1.en"], parts["2.en"]], [parts["1.de"]])

    def test_every_flag_needs_a_file(self, parts):
        with refused("test_source", "none"):
            source([parts["1.en"]], [parts["1.de"]], test=([], []))

    def test_missing_and_empty_files_are_named(self, parts, tmp_path):
        with refused("train_target", "no.de (No such file"):
            source([parts["1.en"]], [str(tmp_path / "no.de")])
        with refused("train_source", "directory"):
            source([str(tmp_path)], [parts["1.de"]])
        empty = write(tmp_path / "empty", b"")
        with refused("train_target", "empty"):
            source([parts["1.en"]], [empty])

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "pipe"])
    def test_pipes_and_devices_are_not_read(self, parts, tmp_path, device):
        os.mkfifo(tmp_path / "pipe")
        path = str(tmp_path / device)  # /dev/zero stays what it is
        with refused("train_target", path):
            source([parts["1.en"]], [path])


class TinyTranslation(tfds.core.GeneratorBasedBuilder):
    """Five and two pairs of German and English, the German with a line break."""

    VERSION = tfds.core.Version("1.0.0")
    code_path = None  # no package around it that could hold checksums

    def _info(self):
        features = tfds.features.Translation(languages=("de", "en"))
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, download_manager):
        return {"train": self._generate_examples(5), "test": self._generate_examples(2)}

    def _generate_examples(self, count):
        for number in range(count):
            yield number, {"de": f"Hund\n{number} ü", "en": f"dog {number}"}


class TinyNumbers(TinyTranslation):
    """No translation, and no training split."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = tfds.features.FeaturesDict({"label": tfds.features.ClassLabel(num_classes=9)})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, download_manager):
        return {"train": self._generate_examples(1)}

    def _generate_examples(self, count):
        yield 0, {"label": 1}


class TinyTestOnly(TinyTranslation):
    """A translation set that has nothing to train on."""

    VERSION = tfds.core.Version("1.0.0")

    def _split_generators(self, download_manager):
        return {"test": self._generate_examples(2)}


class TinyUnreachable(TinyTranslation):
    """A data set whose server is not there."""

    VERSION = tfds.core.Version("1.0.0")

    def _split_generators(self, download_manager):
        raise ConnectionError("no route to host")


class TinyOffline(TinyTranslation):
    """A data set whose server does not answer: nobody listens on that port of this machine."""

    VERSION = tfds.core.Version("1.0.0")
    url_infos = types.MappingProxyType({"http://127.0.0.1:9/a.tgz": None})

    def _split_generators(self, download_manager):
        raise AssertionError("TFDS would try for minutes")


class TinyUnequipped(TinyTranslation):
    """A data set whose preparation lacks a package."""

    VERSION = tfds.core.Version("1.0.0")

    def _split_generators(self, download_manager):
        raise ModuleNotFoundError("some_parser")


class TestTfds:
    @pytest.fixture(scope="class")
    def tfds_dir(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("tfds")
        for builder in (TinyTranslation, TinyNumbers, TinyTestOnly):
            builder(data_dir=folder).download_and_prepare()
        return str(folder)

    def test_pairs_of_both_directions(self, tfds_dir):
        german = TfdsSource("tiny_translation", "de", "en", tfds_dir)
        assert german.survey().counts == {"train": 5, "test": 2}
        expected = {(f"Hund {number} ü", f"dog {number}") for number in range(5)}
        pairs = list(german.pairs("train"))
        assert set(pairs) == expected and len(pairs) == 5
        assert list(german.pairs("train")) == pairs
        english = TfdsSource("tiny_translation:1.0.0", "en", "de", tfds_dir)
        assert sorted(english.pairs("test")) == [("dog 0", "Hund 0 ü"), ("dog 1", "Hund 1 ü")]
        assert english.survey().settings != german.survey().settings

    def test_a_data_directory(self, tfds_dir, tmp_path):
        options = {"source_language": "de", "target_language": "en", "tfds_data_dir": tfds_dir}
        result = kt.prepare(
            tmp_path / "data", dataset="tfds:tiny_translation", vocab_size=290, **options
        )
        assert result["pairs"] == {"train": 5, "test": 2}
        sources, targets = DataSet.open(tmp_path / "data").text("test")
        assert sorted(zip(sources, targets, strict=True)) == [
            ("Hund 0 ü", "dog 0"),
            ("Hund 1 ü", "dog 1"),
        ]

    @pytest.mark.parametrize(
        ("name", "languages", "argument", "received"),
        [
            ("no_such_set", ("en", "de"), "dataset", "tfds:no_such_set"),
            ("tiny_translation/x", ("en", "de"), "dataset", "tfds:tiny_translation/x"),
            ("tiny_translation:9.0.0", ("en", "de"), "dataset", "tfds:tiny_translation:9.0.0"),
            ("", ("en", "de"), "dataset", "tfds:"),
            ("tiny_translation", ("fr", "de"), "source_language", "'fr'"),
            ("tiny_translation", ("en", "fr"), "target_language", "'fr'"),
            ("tiny_translation", ("en", "en"), "target_language", "'en'"),
            ("tiny_numbers", ("en", "de"), "dataset", "label"),
            ("tiny_test_only", ("en", "de"), "dataset", "test"),
            ("tiny_unequipped", ("en", "de"), "dataset", "some_parser"),
            ("tiny_offline", ("en", "de"), "tfds_data_dir", "127.0.0.1:9"),
            ("tiny_unreachable", ("en", "de"), "tfds_data_dir", "no route to host"),
        ],
    )
    def test_what_tfds_lacks_is_named(self, tfds_dir, name, languages, argument, received):
        with refused(argument, received) as error:
            TfdsSource(name, *languages, tfds_dir)
        assert "\n" not in str(error.value)


def test_its_files_are_those_of_all_splits_and_formats(tmp_path):
    english, german = write(tmp_path / "a.en", b"a\n"), write(tmp_path / "a.de", b"b\n")
    both = write(tmp_path / "test.tsv", b"a\tb\n")
    source = FileSource({"train": ([english], [german])}, {"test": [both]}, ("en", "de"))
    assert source.files() == [english, german, both]
