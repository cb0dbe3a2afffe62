import io
import re

import numpy as np
import pytest
import sentencepiece

from keras_transformer.core.vocabulary.subwords import Subwords
from pipelines.prepare import vocabulary
from pipelines.prepare.vocabulary import adopt_subwords, learn_subwords
from tests.refusals import refused

TEXT = [
    "the dog sees the big dog and the small cats.",
    "der Hund sieht den großen Hund, und die kleinen Katzen!",
    'don\'t stop: "dogs" (and cats) see #1 ## x##y',
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 漢字 日本",
    "<s> </s> [EOS] [PAD] <unk> <pad>",
] * 20


@pytest.mark.parametrize("kind", ["bpe", pytest.param("wordpiece", marks=pytest.mark.tensorflow)])
def test_learning_repeats_itself(kind, tmp_path):
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    size = {"bpe": 330, "wordpiece": 135}[kind]
    first, second = (learn_subwords(iter(TEXT), kind, size, folder, 3) for folder in folders)
    assert first.fingerprint == second.fingerprint


def test_the_order_of_the_sentences_does_not_choose_words(monkeypatch):
    monkeypatch.setattr(vocabulary, "_MAX_WORDS", 20)  # among words that are equally frequent
    chosen = []

    def record(words, vocab_size, reserved):
        chosen.append(words)
        return reserved

    monkeypatch.setattr(vocabulary, "_pieces_above_threshold", record)
    for sentences in (TEXT, TEXT[::-1]):
        vocabulary._learn_wordpiece(sentences, 100, [])
    assert chosen[0] == chosen[1] and len(chosen[0]) == 20


def test_the_search_for_a_threshold_ends_once_few_pieces_are_too_many(monkeypatch):
    tried = []

    def learn(words, threshold, reserved):
        tried.append(threshold)
        return [str(number) for number in range(10_500 // threshold)]

    monkeypatch.setattr(vocabulary, "_learn_with_threshold", learn)
    words = [("many", 100), ("few", 1)]
    # 1,050 pieces are 5% more than wanted; 10 is the geometric mean of the counts.
    assert len(vocabulary._pieces_above_threshold(words, 1000, [])) == 1050
    assert tried == [10]


def test_more_text_than_fits_is_sampled(monkeypatch):
    def sample_of(sentences, limit, seed=1):
        monkeypatch.setattr(vocabulary, "_MAX_CHARACTERS", limit)
        sample = vocabulary.SentenceSample(seed)
        for sentence in sentences:
            sample.add([sentence])
        return sample.sentences

    def sample(seed):
        return sample_of([f"{number:05d}" for number in range(1000)], 500, seed)

    assert sample(1) == sample(1) != sample(2)
    assert 60 < len(set(sample(1))) == len(sample(1)) <= 100  # of 5 characters each
    # With equal chances the mean place is near the middle (standard error at most 50).
    assert abs(np.mean([int(text) for text in sample(1)]) - 499.5) < 150
    assert sample_of("abc", 50) == ["a", "b", "c"]
    assert sample_of(["ab", " ", "c"], 3) == ["ab", "c"], "it just fits"


@pytest.mark.parametrize(
    ("kind", "size"),
    [("bpe", 37000), ("bpe", 100)]
    + [pytest.param("wordpiece", size, marks=pytest.mark.tensorflow) for size in (37000, 50)],
)
def test_impossible_sizes_are_named_with_a_bound_that_holds(kind, size, tmp_path):
    with refused("vocab_size", size) as error:
        learn_subwords(TEXT, kind, size, tmp_path, 1)
    bound = int(re.search(r"at (?:most|least) (\d+)", error.value.rule)[1])
    assert learn_subwords(TEXT, kind, bound, tmp_path, 1).vocab_size == bound


def test_blank_text_is_refused(tmp_path):
    with refused("sentences", "none"):
        learn_subwords(["", "  "], "bpe", 300, tmp_path, 1)


def trained_elsewhere(path, **options):
    """A SentencePiece model as spm_train makes it by default: unk 0, begin 1, end 2, no pad."""
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=content, vocab_size=80, minloglevel=2, **options
    )
    path.write_bytes(content.getvalue())
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"model_type": "bpe"}, {"<pad>"}),
        ({"model_type": "unigram", "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, {"<s>"}),
        ({"model_type": "bpe", "bos_piece": "[CLS]", "unk_piece": "?", "eos_id": 78}, {"<pad>"}),
    ],
)
def test_special_ids_of_existing_models_are_moved(options, missing, tmp_path):
    theirs = trained_elsewhere(tmp_path / "theirs.spm", **options)
    adopt_subwords(tmp_path / "theirs.spm", tmp_path / "vocabulary.model", 80 + len(missing))
    ours = Subwords(tmp_path / "vocabulary.model")
    loaded = sentencepiece.SentencePieceProcessor(model_file=str(ours.file))
    special = (loaded.pad_id(), loaded.bos_id(), loaded.eos_id(), loaded.unk_id())
    assert special == (0, 1, 2, 3)
    before, after = ([m.id_to_piece(i) for i in range(m.vocab_size())] for m in (theirs, loaded))
    first = [after[i] for i in special]
    assert set(after) - set(before) == missing
    assert after[4:] == [piece for piece in before if piece not in first]
    for text in TEXT[:5]:  # an unknown character is no piece of either, but the same text
        assert loaded.encode(text, out_type=str) == theirs.encode(text, out_type=str)
        assert ours.encode([text]) == [loaded.encode(text)]
    assert ours.decode(ours.encode(["the dog"])) == ["the dog"]
    again = tmp_path / "again.model"
    adopt_subwords(ours.file, again, None)
    assert again.read_bytes() == ours.file.read_bytes()  # nothing is left to move


@pytest.mark.parametrize(
    ("kind", "size"), [("bpe", 330), pytest.param("wordpiece", 135, marks=pytest.mark.tensorflow)]
)
def test_our_own_vocabularies_are_copied(kind, size, tmp_path):
    learned = learn_subwords(TEXT, kind, size, tmp_path, seed=1)
    copy = tmp_path / f"source_vocabulary{learned.file.suffix}"
    adopt_subwords(learned.file, copy, size)
    assert copy.read_bytes() == learned.file.read_bytes()
    with refused("vocab_size", 99, about=f"{size}"):
        adopt_subwords(learned.file, copy, 99)


def test_an_existing_vocabulary_has_every_symbol(tmp_path):
    learned = learn_subwords(TEXT, "bpe", 330, tmp_path, seed=1, symbols=["(NP", ")NP"])
    file = tmp_path / "target_vocabulary.model"
    adopt_subwords(learned.file, file, None, ["(NP", ")NP"])
    assert [len(ids) for ids in Subwords(file).encode(["(NP", ")NP"])] == [1, 1]
    with refused("vocabulary", "(VP, )VP"):
        adopt_subwords(learned.file, file, None, ["(NP", "(VP", ")NP", ")VP"])
