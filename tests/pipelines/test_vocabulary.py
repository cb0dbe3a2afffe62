import numpy as np
import pytest

from keras_transformer import InputError
from pipelines import vocabulary
from pipelines.vocabulary import learn_subwords

TEXT = [
    "the dog sees the big dog and the small cats.",
    "der Hund sieht den großen Hund, und die kleinen Katzen!",
    'don\'t stop: "dogs" (and cats) see #1 ## x##y',
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 漢字 日本",
    "<s> </s> [EOS] [PAD] <unk> <pad>",
] * 20


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_learning_repeats_itself(kind, tmp_path):
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    size = {"bpe": 330, "wordpiece": 135}[kind]
    first, second = (learn_subwords(iter(TEXT), kind, size, folder, 3) for folder in folders)
    assert first.fingerprint == second.fingerprint


def test_more_text_than_fits_is_sampled():
    def sample(seed):
        return vocabulary._sample((f"{number:05d}" for number in range(1000)), 500, seed)

    assert sample(1) == sample(1) != sample(2)
    assert 60 < len(set(sample(1))) == len(sample(1)) <= 100  # of 5 characters each
    # With equal chances the mean place is near the middle (standard error at most 50).
    assert abs(np.mean([int(text) for text in sample(1)]) - 499.5) < 150
    assert vocabulary._sample(iter("abc"), 50, 1) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("bpe", 37000, r"--vocab_size must be at most (\d+), which is all .* Received: 37000"),
        ("bpe", 100, r"--vocab_size must be at least (\d+), to hold every .* Received: 100"),
        ("wordpiece", 37000, r"--vocab_size must be at most (\d+), which is all .*: 37000"),
        ("wordpiece", 50, r"--vocab_size must be at least (\d+), to hold every .*: 50"),
    ],
)
def test_impossible_sizes_are_named_with_a_bound_that_holds(kind, size, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        learn_subwords(TEXT, kind, size, tmp_path, 1)
    bound = int(str(error.value).partition(" must be at ")[2].split()[1].rstrip(","))
    assert learn_subwords(TEXT, kind, bound, tmp_path, 1).vocab_size == bound


def test_blank_text_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"training text must hold at least one sentence"):
        learn_subwords(["", "  "], "bpe", 300, tmp_path, 1)
