import dataclasses
import gzip
import itertools
import json
from collections import Counter

import pytest
import tensorflow as tf

from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.parsing.linearisation import Linearisation
from keras_transformer.support.text_changes import with_typos
from pipelines.prepare import augmentation, sharding, term_annotation
from pipelines.prepare.augmentation import changed, changed_copies
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.prepare.selection import SelectionConfig, select
from pipelines.prepare.term_annotation import unmarked
from pipelines.sources.files import FileSource
from pipelines.sources.treebank import TreebankSource
from tests.data_folders import contents
from tests.refusals import refused

ANIMALS = [("dogs", "Hunde"), ("cats", "Katzen"), ("birds", "Vögel")]
PAIRS = [
    (f"the {source} of house {n} run.", f"die {target} von Haus {n} laufen.")
    for n, (source, target) in zip(range(300), itertools.cycle(ANIMALS), strict=False)
]


def augment(source, shares, seed):
    """The augmented source, its survey, and what was added."""
    return augmentation.augment(source, source.survey(), shares, seed)


ALL = {"upper": 1.0, "title": 1.0, "typos": 1.0, "no_stop": 1.0}
SOME = {"upper": 0.1, "title": 0.2, "typos": 0.3, "no_stop": 0.4}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three files a side, and a split that is not for training."""
    folder = tmp_path_factory.mktemp("text")

    def write(name, lines):
        path = folder / name
        path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
        return str(path)

    def files(name, *parts):
        return tuple(
            [
                write(f"{name}{number}.{side}.gz", [pair[side] for pair in part])
                for number, part in enumerate(parts)
            ]
            for side in (0, 1)
        )

    train = files("train", PAIRS[:130], PAIRS[130:140], PAIRS[140:])
    return FileSource({"train": train, "test": files("test", PAIRS[:9])})


@pytest.mark.parametrize(
    ("kind", "copy"),
    [
        ("upper", ("A DOG'S BALL.", "DER BALL EINES HUNDS, GROSS.")),
        ("title", ("A Dog's Ball.", "Der Ball Eines Hunds, Groß.")),
        ("no_stop", ("A dog's ball", "Der Ball eines Hunds, groß")),
    ],
)
def test_both_sides_are_changed(kind, copy):
    assert changed(("A dog's ball.", "Der Ball eines Hunds, groß."), kind, seed=1) == copy


def test_typos_are_in_the_source_alone():
    pair = ("A dog's ball.", "Der Ball eines Hunds.")
    assert changed(pair, "typos", seed=5) == (with_typos(pair[0], 5), pair[1])
    assert changed(pair, "typos", seed=5)[0] != pair[0]


def test_a_pair_is_followed_by_its_copies(source):
    augmented, survey, added = augment(source, ALL, seed=2)
    assert added == dict.fromkeys(ALL, 300)
    pairs = list(augmented.pairs("train"))
    assert len(pairs) == 5 * 300 and survey.counts == {"train": 1500, "test": 9}
    source_text, target_text = PAIRS[7]
    assert pairs[35:40] == [
        PAIRS[7],
        ("THE CATS OF HOUSE 7 RUN.", "DIE KATZEN VON HAUS 7 LAUFEN."),
        ("The Cats Of House 7 Run.", "Die Katzen Von Haus 7 Laufen."),
        (with_typos(source_text, 2), target_text),
        ("the cats of house 7 run", "die Katzen von Haus 7 laufen"),
    ]
    assert list(augmented.pairs("test")) == PAIRS[:9]


def test_a_source_that_stays_as_it_is_has_no_copy():
    assert list(changed_copies(("12", "zwölf."), ALL, seed=1)) == []
    assert [kind for kind, _ in changed_copies(("A B", "a b."), ALL, seed=1)] == []


def test_shares_are_of_all_pairs_and_drawn_apart():
    counts, together = Counter(), Counter()
    for n in range(10_000):
        kinds = [kind for kind, _ in changed_copies((f"the dog {n}.", "x."), SOME, seed=1)]
        counts.update(kinds)
        together.update(itertools.combinations(kinds, 2))
    # By 4.5 standard deviations at most, which are those of a binomial distribution.
    for kind, share in SOME.items():
        expected = 10_000 * share
        assert abs(counts[kind] - expected) < 4.5 * (expected * (1 - share)) ** 0.5
    for kinds in itertools.combinations(SOME, 2):
        share = SOME[kinds[0]] * SOME[kinds[1]]
        expected = 10_000 * share
        assert abs(together[kinds] - expected) < 4.5 * (expected * (1 - share)) ** 0.5


def test_another_seed_draws_others_and_another_kind_changes_none(source):
    augmented, survey, added = augment(source, SOME, seed=1)
    pairs = list(augmented.pairs("train"))
    assert survey.counts["train"] == len(pairs) == 300 + sum(added.values())
    other, _, other_added = augment(source, SOME, seed=2)
    assert other_added != added and list(other.pairs("train")) != pairs
    alone, _, alone_added = augment(source, {"typos": 0.3}, seed=1)
    assert alone_added == {"typos": added["typos"]}
    assert set(alone.pairs("train")) <= set(pairs)


def test_parts_are_the_whole(source):
    shares = {**SOME, "words": 0.05}
    augmented, survey, added = augment(source, shares, seed=1)
    assert added["words"] > 0
    parts = augmented.parts("train")
    assert len(parts) == 3
    in_parts = [list(part.pairs("train")) for part in parts]
    assert survey.part_sizes == list(map(len, in_parts))
    assert list(itertools.chain.from_iterable(in_parts)) == list(augmented.pairs("train"))


def test_selected_pairs_are_augmented(source):
    selected = select(source, SelectionConfig(weights=[2, 0, 1]))
    augmented, survey, added = augmentation.augment(
        selected.source, selected.survey, {"upper": 1.0}, seed=1
    )
    assert added == {"upper": 420}
    pairs = list(augmented.pairs("train"))
    assert pairs[:2] == pairs[2:4] == [PAIRS[0], tuple(side.upper() for side in PAIRS[0])]
    parts = augmented.parts("train")
    assert survey.part_sizes == [520, 0, 320]
    in_parts = [pair for part in parts for pair in part.pairs("train")]
    assert in_parts == pairs


def test_every_pair_of_the_result_is_visited_in_order(source):
    visited = []
    shares = {**SOME, "words": 0.05}
    augmented, _, _ = augmentation.augment(source, source.survey(), shares, 1, visited.append)
    assert visited == list(augmented.pairs("train"))


CONFIG = PreparationConfig(vocab_size=330, max_length=60, augment={**SOME, "words": 0.02})


def test_metadata_count_what_was_added(source, tmp_path):
    result = prepare(source, tmp_path, CONFIG)
    _, _, added = augment(source, CONFIG.augment, CONFIG.seed)
    assert read_metadata(tmp_path).splits["train"].added == added
    assert result["added"] == added
    fields = json.loads((tmp_path / "metadata.json").read_text())
    assert fields["settings"]["--augment"] == {**SOME, "words": 0.02}
    total = fields["splits"]["train"]["pairs"] + sum(fields["splits"]["train"]["dropped"].values())
    assert total == 300 + sum(added.values())
    assert prepare(source, tmp_path, CONFIG)["up_to_date"]
    plain = dataclasses.replace(CONFIG, augment=None)
    with refused("data_dir", f"None, there: {CONFIG.augment}", about="augment"):
        prepare(source, tmp_path, plain)


def test_data_are_the_same_for_any_number_of_workers(source, tmp_path, monkeypatch):
    monkeypatch.setattr(sharding, "BLOCK_PAIRS", 60)
    monkeypatch.setattr(sharding, "_PAIRS_PER_SHARD", 200)
    for cores in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        prepare(source, tmp_path / f"{cores}", CONFIG)
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


@pytest.fixture
def animals_are_terms(monkeypatch):
    """The other four words are common ones; and terms stay in their source."""
    monkeypatch.setattr(term_annotation, "_COMMON_SHARE", 0.6)
    monkeypatch.setattr(term_annotation, "_REPLACED_SHARE", 0)


@pytest.mark.usefixtures("animals_are_terms")
def test_copies_with_terms_follow_their_pairs(source):
    shares = {"no_stop": 1.0, "terms": 0.5, "words": 0.05}
    visited = []
    augmented, survey, added = augmentation.augment(
        source, source.survey(), shares, 1, visited.append
    )
    pairs = list(augmented.pairs("train"))
    with_terms = [pair for pair in pairs if unmarked(pair[0])[1]]
    assert 110 < len(with_terms) == added["terms"] < 190
    assert visited == [pair for pair in pairs if pair not in with_terms], "their text is known"
    for number, pair in enumerate(pairs):
        text, terms = unmarked(pair[0])
        if terms:
            assert pairs[number - 2] == (text, pair[1])
        for start, end, target in terms:
            assert (text[start:end], target) in ANIMALS
    assert survey.counts["train"] == len(pairs)
    parts = augmented.parts("train")
    assert [pair for part in parts for pair in part.pairs("train")] == pairs
    alone, _, _ = augment(source, {"terms": 0.5}, seed=1)
    assert [pair for pair in alone.pairs("train") if unmarked(pair[0])[1]] == with_terms


@pytest.mark.usefixtures("animals_are_terms")
@pytest.mark.parametrize("tokenizer", ["bpe", "wordpiece"])
def test_records_with_terms(source, tmp_path, tokenizer):
    size = {"bpe": 330, "wordpiece": 80}[tokenizer]
    config = PreparationConfig(
        tokenizer=tokenizer, vocab_size=size, max_length=60, augment={"terms": 0.5}
    )
    added = prepare(source, tmp_path, config)["added"]["terms"]
    assert read_metadata(tmp_path).task_options == {"terms": True}
    vocabulary = VocabularyPair.load(tmp_path).source
    begin, translated_as, end = vocabulary.term_ids
    annotated = 0
    for row in sources_of(tmp_path, "train"):
        if begin in row:
            annotated += 1
            first = vocabulary.decode([row[row.index(begin) + 1 : row.index(translated_as)]])[0]
            target = vocabulary.decode([row[row.index(translated_as) + 1 : row.index(end)]])[0]
            assert (first, target) in ANIMALS
    assert annotated == added > 100
    assert not any(begin in row for row in sources_of(tmp_path, "test"))


def sources_of(data_dir, split):
    """The sources of a split's records."""
    rows = []
    for shard in sorted(data_dir.glob(f"{split}-*")):
        for record in tf.data.TFRecordDataset(str(shard)):
            example = tf.train.Example.FromString(record.numpy())
            rows.append(list(example.features.feature["source"].int64_list.value))
    return rows


def test_terms_need_marks_in_one_vocabulary(source, tmp_path):
    config = dataclasses.replace(CONFIG, augment=None)
    prepare(source, tmp_path / "plain", config)
    assert VocabularyPair.load(tmp_path / "plain").source.term_ids == ()
    assert read_metadata(tmp_path / "plain").task_options == {}
    existing = {"vocabulary": (str(tmp_path / "plain" / "vocabulary.model"),), "vocab_size": None}
    with refused("vocabulary", "<term>, <as>, </term>"):
        prepare(source, tmp_path / "a", dataclasses.replace(TERMS, **existing))
    prepare(source, tmp_path / "terms", TERMS)
    existing["vocabulary"] = (str(tmp_path / "terms" / "vocabulary.model"),)
    prepare(source, tmp_path / "b", dataclasses.replace(TERMS, **existing))
    assert len(VocabularyPair.load(tmp_path / "b").source.term_ids) == 3
    with refused("shared_vocabulary", "False", about="terms"):
        dataclasses.replace(TERMS, shared_vocabulary=False)


TERMS = PreparationConfig(vocab_size=330, max_length=60, augment={"terms": 0.5})


def test_trees_are_no_text(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text("(S (NP (DT the) (NN dog)) (VP (VBZ runs)))\n")
    trees = TreebankSource({"train": [str(path)]}, Linearisation())
    with refused("augment", "upper"):
        augment(trees, {"upper": 0.1}, seed=1)


@pytest.mark.parametrize(
    ("shares", "argument", "received"),
    [
        ({"lower": 0.1}, "augment", "lower"),
        ({"upper": 0}, "augment.upper", "0"),
        ({"upper": 1.5}, "augment.upper", "1.5"),
        ({"upper": float("nan")}, "augment.upper", "NaN"),
        ({"upper": "x"}, "augment.upper", "x"),
    ],
)
def test_wrong_shares(shares, argument, received):
    with refused(argument, received):
        PreparationConfig(augment=shares)
