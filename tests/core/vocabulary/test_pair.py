import shutil

import pytest

from keras_transformer.core.vocabulary.pair import VocabularyPair
from pipelines.prepare.vocabulary import learn_subwords
from tests.refusals import refused

ENGLISH, GERMAN = ["the dog sees the cat"] * 9, ["der Hund sieht die Katze"] * 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Vocabularies of two sides."""
    folder = tmp_path_factory.mktemp("vocabularies")
    learn_subwords(ENGLISH, "bpe", 280, folder, seed=1, name="source_vocabulary")
    learn_subwords(GERMAN, "bpe", 285, folder, seed=1, name="target_vocabulary")
    return folder


def test_each_side_has_its_own(folder):
    source, target = pair = VocabularyPair.load(folder)
    assert (source.vocab_size, target.vocab_size) == (280, 285)
    assert [side.encode([ENGLISH[0]]) == target.encode([ENGLISH[0]]) for side in pair] == [0, 1]
    assert pair.own_source is source
    assert pair.fingerprints == {
        "vocabulary_fingerprint": target.fingerprint,
        "source_vocabulary_fingerprint": source.fingerprint,
    }


def test_both_sides_share_one(folder, tmp_path):
    shutil.copy(folder / "target_vocabulary.model", tmp_path / "vocabulary.model")
    pair = VocabularyPair.load(tmp_path)
    assert pair.source is pair.target and pair.own_source is None
    assert pair.fingerprints == {
        "vocabulary_fingerprint": pair.target.fingerprint,
        "source_vocabulary_fingerprint": None,
    }


@pytest.mark.parametrize(
    ("names", "received"),
    [
        ([], "none of them"),
        (["source_vocabulary.model"], "source_vocabulary.model"),
        (["vocabulary.model", "vocabulary.txt"], "vocabulary.model, vocabulary.txt"),
        (["vocabulary.txt", "target_vocabulary.model"], "vocabulary.txt, target_vocabulary.model"),
    ],
)
def test_folders_that_hold_no_pair(tmp_path, names, received):
    for name in names:
        (tmp_path / name).write_text("")
    with refused(None, received, place=tmp_path):
        VocabularyPair.load(tmp_path)
