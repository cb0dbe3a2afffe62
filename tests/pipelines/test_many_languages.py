"""Data of several directions: codes before the sources, and which texts go together."""

import json
import re

import pytest

from keras_transformer import prepare
from keras_transformer.core.vocabulary.language_codes import Direction
from pipelines.batches.data_set import DataSet
from pipelines.evaluation import EvaluationConfig, evaluate_on
from pipelines.prepare.augmentation import augment
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.selection import SelectionConfig, select, temperature_weights
from pipelines.sources.file_options import FileOptions, file_source
from pipelines.sources.many_languages import (
    code_languages,
    source_of_files,
    source_of_parallel_text,
    with_codes,
)
from tests.program_fixtures import make_model_dir
from tests.refusals import refused

TEXTS = {
    "en": ["the dog", "a cat sleeps", "one"],
    "de": ["der Hund", "eine Katze schläft", "eins"],
    "cs": ["pes", "kočka spí", "jedna"],
}


@pytest.fixture
def files(tmp_path):
    """A file for each language, and one of other text."""
    for language, lines in TEXTS.items():
        (tmp_path / f"a.{language}").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (tmp_path / "b.de").write_text("zwei\n")
    (tmp_path / "b.en").write_text("two\n")
    return lambda *names: [str(tmp_path / name) for name in names]


def parallel_text(files, *languages):
    return {language: files(f"a.{language}") for language in languages or TEXTS}


class TestFiles:
    def test_each_source_begins_with_the_code_of_its_target_file(self, files):
        texts = {"train": (files("a.en", "a.en", "b.de"), files("a.de", "a.cs", "b.en"))}
        source = source_of_files(texts, {"train": ["de", "cs", "en"]})
        pairs = list(with_codes(source).pairs("train"))
        assert pairs[0] == (">>de<< the dog", "der Hund")
        assert pairs[3] == (">>cs<< the dog", "pes")
        assert pairs[6] == (">>en<< zwei", "two")
        assert source.languages == ("en", "de", "cs")
        assert source.task_options() == {
            "target_languages": ["de", "cs", "en"],
            "directions": [["en", "de"], ["en", "cs"], ["de", "en"]],
        }

    def test_the_codes_of_both_languages(self, files):
        texts = {"train": (files("a.en", "b.de"), files("a.de", "b.en"))}
        source = source_of_files(texts, {"train": ["de", "en"]}, source_codes=True)
        pairs = list(with_codes(source).pairs("train"))
        assert pairs[0] == (">>de<< >>en<< the dog", "der Hund")
        assert pairs[3] == (">>en<< >>de<< zwei", "two")
        assert source.task_options()["source_languages"] == ["en", "de"]
        one_way = source_of_files(
            {"train": (files("a.en"), files("a.de"))}, {"train": ["de"]}, source_codes=True
        )
        assert code_languages(one_way) == ["de", "en"]
        with refused("source_codes", "neither"):
            train = {"train_source": files("a.en"), "train_target": files("a.de")}
            file_source(FileOptions(**train, source_codes=True))

    def test_a_blank_source_gets_no_code(self, files, tmp_path):
        (tmp_path / "b.de").write_text(" \n")
        source = source_of_files({"train": (files("b.de"), files("b.en"))}, {"train": ["en"]})
        assert list(with_codes(source).pairs("train")) == [(" ", "two")]

    def test_other_splits_have_the_languages_of_training_or_their_own(self, files):
        train = (files("a.en", "a.de"), files("a.de", "a.en"))
        same = {"train": train, "validation": train, "test": (files("b.de"), files("b.en"))}
        languages = {"train": ["de", "en"]}
        with refused("test_target_languages", "de,en for 1"):
            source_of_files(same, languages)
        source = source_of_files(same, {**languages, "test": ["en"]})
        assert list(with_codes(source).pairs("test")) == [(">>en<< zwei", "two")]
        assert next(with_codes(source).pairs("validation")) == (">>de<< the dog", "der Hund")

    @pytest.mark.parametrize(
        ("languages", "argument", "received"),
        [
            (["de"], "target_languages", "de for 2"),
            (["cs", "de"], "target_languages", "cs of"),
            (["de", "x y"], "target_languages", "'x y'"),
            (["de", "en "], "target_languages", "'en '"),
        ],
    )
    def test_languages_that_do_not_match_are_refused(self, files, languages, argument, received):
        train = (files("a.en", "a.en"), files("a.de", "a.cs"))
        validation = (files("b.de"), files("b.en"))
        with refused(argument, received):
            source_of_files(
                {"train": train, "validation": validation},
                {"train": languages, "validation": ["en"]},
            )

    def test_a_direction_without_training_data_is_refused(self, files):
        splits = {"train": (files("a.en"), files("a.de")), "test": (files("b.de"), files("b.en"))}
        with refused("test_source", "de-en"):
            source_of_files(splits, {"train": ["de"], "test": ["en"]})

    def test_a_language_into_itself_is_refused(self, files):
        train = {"train": (files("a.de"), files("b.de"))}
        with refused("target_languages", "de-de"):
            source_of_files(train, {"train": ["de"]})

    @pytest.mark.parametrize("line", [">>de<< a dog", "a dog >>en<<"])
    def test_a_code_in_the_text_is_named(self, files, tmp_path, line):
        (tmp_path / "c.en").write_text(f"a >>fr<< <<\n{line}\n")
        (tmp_path / "c.de").write_text("a\nb\n")
        splits = {"train": (files("a.de", "c.en"), files("a.en", "c.de"))}
        source = source_of_files(splits, {"train": ["en", "de"]})
        with refused(None, re.search(">>..<<", line)[0], place="c.en:2"):
            source.survey()


class TestParallelText:
    def test_all_directions(self, files):
        source = source_of_parallel_text({"train": parallel_text(files)})
        pairs = list(with_codes(source).pairs("train"))
        assert source.survey().counts == {"train": 18} and len(pairs) == 18
        firsts = [source.split()[0] for source, _ in pairs[::3]]
        assert firsts == [">>de<<", ">>cs<<", ">>en<<", ">>cs<<", ">>en<<", ">>de<<"]
        assert pairs[6] == (">>en<< der Hund", "the dog")

    def test_named_directions_and_fewer_languages_for_testing(self, files):
        text = {"train": parallel_text(files), "test": parallel_text(files, "de", "en")}
        source = source_of_parallel_text(text, ["en-de", "de-cs"])
        assert source.task_options()["directions"] == [["en", "de"], ["de", "cs"]]
        assert source.survey().counts == {"train": 6, "test": 3}
        assert [part.languages for part in source.parts("test")] == [Direction("en", "de")]

    @pytest.mark.parametrize(
        ("languages", "test", "directions", "argument", "received"),
        [
            (["en"], None, None, "parallel", "en"),
            (["en", "de"], None, ["en-cs"], "directions", "en-cs"),
            (["en", "de"], None, ["en-en"], "directions", "en-en"),
            (["en", "de"], None, [], "directions", "none"),
            (["en", "de"], ["cs"], None, "test_parallel", "cs"),
            (["en", "de"], ["de"], None, "test_parallel", "de"),
        ],
    )
    def test_what_cannot_be_is_named(self, files, languages, test, directions, argument, received):
        text = {"train": parallel_text(files, *languages)}
        if test is not None:
            text["test"] = parallel_text(files, *test)
        with refused(argument, received):
            source_of_parallel_text(text, directions)

    def test_files_of_unequal_length_are_named(self, files):
        text = {"en": files("a.en"), "de": files("b.de")}
        with refused("parallel", f"a.en, 1 in {files('b.de')[0]}"):
            source_of_parallel_text({"train": text}).survey()


class TestArguments:
    @pytest.mark.parametrize(
        ("change", "argument", "received"),
        [
            (
                {"directions": ["en-de"], "parallel": None, "train_pairs": "t.tsv"},
                "directions",
                "en-de",
            ),
            ({"test_pairs": ["t.tsv"]}, "test_pairs", "t.tsv"),
            ({"source_language": "en", "target_language": "de"}, "source_language", "en,de"),
            ({"train_source": "a", "train_target": "b"}, "train_source", "a"),
            ({"test_target_languages": ["de"]}, "test_target_languages", "de"),
            ({"parallel": None, "test_parallel": {}}, "parallel", "none"),
            (
                {
                    "parallel": None,
                    "train_source": "a.en",
                    "train_target": "a.de",
                    "test_target_languages": ["de"],
                },
                "target_languages",
                "none",
            ),
        ],
    )
    def test_those_that_do_not_go_together_are_named(self, files, change, argument, received):
        with refused(argument, received):
            file_source(FileOptions(**{"parallel": parallel_text(files), **change}))

    @pytest.mark.parametrize(
        ("arguments", "argument", "received"),
        [
            ({"target_languages": "de"}, "target_languages", "'de'"),
            ({"directions": "en-de", "parallel": {}}, "directions", "'en-de'"),
            ({"parallel": ["a.en"]}, "parallel", "['a.en']"),
            ({"parallel": {"en": 1}}, "parallel['en']", "1"),
        ],
    )
    def test_of_other_types_are_named(self, tmp_path, arguments, argument, received):
        with refused(argument, received):
            prepare(tmp_path / "data", **arguments)

    @pytest.mark.tensorflow
    def test_lists_of_files_by_pattern(self, files, tmp_path):
        for number in "12":
            for language, word in (("en", "dog"), ("de", "Hund")):
                (tmp_path / f"part-{number}.{language}").write_text(f"{word} {number}\n" * 20)
        made = prepare(
            tmp_path / "data",
            train_source=tmp_path / "part-*.en",
            train_target=[tmp_path / "part-1.de", tmp_path / "part-2.de"],
            target_languages=("de", "de"),
            tokenizer="wordpiece",
            vocab_size=21,
        )
        assert made["pairs"] == {"train": 40}
        assert read_metadata(tmp_path / "data").task_options["directions"] == [["en", "de"]]


class TestSelectionAndAugmentation:
    def test_text_is_changed_before_it_gets_its_code(self, files):
        source = source_of_parallel_text({"train": parallel_text(files, "en", "de")})
        augmented, survey, _ = augment(source, source.survey(), {"upper": 1.0}, seed=1)
        pairs = list(with_codes(augmented).pairs("train"))
        assert pairs[:2] == [(">>de<< the dog", "der Hund"), (">>de<< THE DOG", "DER HUND")]
        assert survey.counts == {"train": 12} and len(pairs) == 12

    def test_words_follow_their_direction(self, files, tmp_path):
        for language, words in (("en", "one two"), ("de", "eins zwei")):
            first, second = words.split()
            lines = [f"{words}\n", f"{first}\n", f"{second}\n"] * 6
            (tmp_path / f"a.{language}").write_text("".join(lines))
        source = source_of_parallel_text({"train": parallel_text(files, "en", "de")})
        augmented = augment(source, source.survey(), {"words": 0.2}, seed=1).source
        parts = [list(part.pairs("train"))[18:] for part in with_codes(augmented).parts("train")]
        assert parts == [
            [(">>de<< one", "eins"), (">>de<< two", "zwei")],
            [(">>en<< eins", "one"), (">>en<< zwei", "two")],
        ]

    def test_equal_texts_of_two_directions_are_two_pairs(self, files, tmp_path):
        for language in TEXTS:
            (tmp_path / f"a.{language}").write_text("Hotel\nHotel\n")
        source = source_of_parallel_text({"train": parallel_text(files)}, ["en-de", "en-cs"])
        selection = select(source, SelectionConfig(dedupe=True))
        assert selection.dropped == {"dedupe": 2}
        pairs = list(with_codes(selection.source).pairs("train"))
        assert pairs == [(">>de<< Hotel", "Hotel"), (">>cs<< Hotel", "Hotel")]

    def test_temperature_by_hand(self):
        # Shares of 1,000 and 10 pairs are as 1000^(1/2) to 10^(1/2), which is 10 to 1: where the
        # larger file has 1,000 pairs, the smaller one has 100.
        assert temperature_weights([1000, 10], 2) == pytest.approx([1, 10])
        assert temperature_weights([1000, 10], 1) == [1, 1]
        assert temperature_weights([16, 1, 16], 4) == pytest.approx([1, 8, 1])
        with refused("temperature", "5, "):
            temperature_weights([100_000_000, 10], 5)

    def test_temperature_counts_the_pairs_that_filters_leave(self, files, tmp_path):
        (tmp_path / "a.en").write_text("a\n" * 8 + "b\n" * 8)
        (tmp_path / "a.de").write_text("A\n" * 8 + "c\n" * 8)
        (tmp_path / "b.de").write_text("d\ne\n")
        (tmp_path / "b.en").write_text("f\ng\n")
        splits = {"train": (files("a.en", "b.de"), files("a.de", "b.en"))}
        source = source_of_files(splits, {"train": ["de", "en"]})
        config = SelectionConfig(drop_identical=True, temperature=2)
        pairs = list(with_codes(select(source, config).source).pairs("train"))
        # 8 pairs are left of one file, and 2 of the other: (8 / 2)^(1/2) = 2.
        assert pairs == [(">>de<< b", "c")] * 8 + [(">>en<< d", "f")] * 2 + [(">>en<< e", "g")] * 2
        with refused("weights", "[1, 1]"):
            select(source, SelectionConfig(weights=[1, 1], temperature=2))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    for language, lines in TEXTS.items():
        (folder / f"a.{language}").write_text("\n".join(lines * 8) + "\n", encoding="utf-8")
    paths = {language: folder / f"a.{language}" for language in TEXTS}
    options = {"directions": ["en-de", "en-cs", "de-en"], "vocab_size": 310, "temperature": 2}
    prepare(folder / "data", parallel=paths, test_parallel=paths, **options)
    return folder


@pytest.mark.tensorflow
class TestDataDirectory:
    def test_it_says_its_languages_and_directions(self, prepared):
        metadata = read_metadata(prepared / "data")
        assert metadata.languages == ["en", "de", "cs"]
        assert metadata.task_options["target_languages"] == ["de", "cs", "en"]
        content = json.loads((prepared / "data" / "metadata.json").read_text())
        assert content["settings"]["--directions"]["test"] == ["en-de", "en-cs", "de-en"]
        assert content["settings"]["--temperature"] == 2

    def test_the_text_of_a_split_has_codes_and_directions(self, prepared):
        sources, targets = DataSet.open(prepared / "data").text("test")
        directions = DataSet.open(prepared / "data").directions("test")
        assert (sources[0], targets[0], directions[0]) == (">>de<< the dog", "der Hund", "en-de")
        assert (sources[-1], targets[-1], directions[-1]) == (">>en<< eins", "one", "de-en")
        assert len(sources) == len(directions) == 72

    def test_a_vocabulary_without_a_code_is_refused(self, prepared, tmp_path):
        paths = {language: prepared / f"a.{language}" for language in ("cs", "en")}
        vocabulary = prepared / "data" / "vocabulary.model"
        given = prepare(tmp_path / "given", parallel=paths, vocabulary=vocabulary)
        assert given["vocab_size"] == 310
        (tmp_path / "a.fr").write_text("un\n" * 24)
        with refused("vocabulary", ">>fr<<"):
            more = {**paths, "fr": tmp_path / "a.fr"}
            prepare(tmp_path / "more", parallel=more, vocabulary=vocabulary)

    def test_one_direction_has_no_such_texts(self, prepared, tmp_path):
        pair = {"train_source": prepared / "a.en", "train_target": prepared / "a.de"}
        test = {"test_source": prepared / "a.en", "test_target": prepared / "a.de"}
        prepare(tmp_path / "data", **pair, **test, vocab_size=300)
        assert DataSet.open(tmp_path / "data").directions("test") is None
        content = json.loads((tmp_path / "data" / "metadata.json").read_text())
        assert content["settings"]["--temperature"] is None and content["task_options"] == {}


@pytest.fixture(scope="module")
def translator(prepared):
    from keras_transformer import load

    make_model_dir(prepared / "data", prepared / "model", {10: (1, 1)})
    return load(prepared / "model", beam_size=1, n_best=1)


@pytest.mark.tensorflow
class TestEvaluation:
    def test_every_direction_has_scores(self, prepared, translator):
        assert translator.target_languages == ("de", "cs", "en")
        results = evaluate_on(
            DataSet.open(prepared / "data"), translator, EvaluationConfig(limit=2)
        )
        assert list(results["directions"]) == ["en-de", "en-cs", "de-en"]
        assert [each["sentences"] for each in results["directions"].values()] == [2, 2, 2]
        assert results["sentences"] == 6 and results["languages"] == ["en", "de", "cs"]
        assert "paper_bleu" not in results and results["tokens"] > 72

    def test_data_that_are_not_those_of_the_model_are_refused(self, prepared, translator, tmp_path):
        paths = {language: prepared / f"a.{language}" for language in TEXTS}
        options = {"vocabulary": prepared / "data" / "vocabulary.model"}
        prepare(tmp_path / "more", parallel=paths, test_parallel=paths, **options)
        with refused("data_dir", f"de-cs in {tmp_path / 'more'}"):
            evaluate_on(DataSet.open(tmp_path / "more"), translator)
        pair = {"train_source": paths["en"], "train_target": paths["de"]}
        test = {"test_source": paths["en"], "test_target": paths["de"]}
        prepare(tmp_path / "pair", **pair, **test, **options)
        with refused("data_dir", tmp_path / "pair", about="codes"):
            evaluate_on(DataSet.open(tmp_path / "pair"), translator)
        with refused("robustness", prepared / "data"):
            EvaluationConfig(robustness=True).check(DataSet.open(prepared / "data"))
