"""Models in Marian's own format, beside Marian's equations in NumPy."""

import shutil

import numpy as np
import pytest
import yaml

from keras_transformer.errors import InputError
from keras_transformer.importing.marian import import_marian
from keras_transformer.importing.marian_model import build
from keras_transformer.importing.marian_npz import read_npz
from keras_transformer.vocabulary.pair import VocabularyPair
from tests.importing import marian_files


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    marian_files.write_vocabulary(folder)
    return folder


def assert_same_logits(made, **settings):
    kept = read_npz(made.folder)
    rng = np.random.default_rng(5)
    source, target = rng.integers(2, made.size + 2, size=(2, 1, 9), dtype=np.int32)
    target[0, 0] = 1
    ours = np.array(build(kept)({"source": source, "target": target}))[0]
    source_there = kept.source.rows[source[0]]
    target_there = [None, *kept.target.rows[target[0, 1:]]]
    theirs = marian_files.marian_logits(
        made.options, made.weights, source_there, target_there, **settings
    )
    np.testing.assert_allclose(ours[:, 2:], theirs[:, kept.target.rows[2:]], atol=1e-4)
    assert (ours[:, :2] < -1e4).all()  # padding and BOS


@pytest.mark.parametrize("variant", marian_files.VARIANTS)
def test_logits(variant, texts, tmp_path):
    made = marian_files.write_model(texts, tmp_path / "model", variant)
    assert_same_logits(made)
    # The reference tells such models from those of Hugging Face, whose sinusoids are others.
    with pytest.raises(AssertionError):
        assert_same_logits(made, steps=marian_files.D_MODEL // 2)


def test_a_bias_of_logits_may_be_left_out(texts, tmp_path):
    made = marian_files.write_model(texts, tmp_path / "model", "untied")
    changed_weight("decoder_ff_logit_out_b", None)(made.folder)
    made.weights["decoder_ff_logit_out_b"][:] = 0
    assert_same_logits(made)


def test_one_sentencepiece_model_as_vocabulary(tmp_path):
    """Marian's own vocabularies: *.spm, whose ids are those of its pieces."""
    ids = {"bos_id": -1, "eos_id": 0, "unk_id": 1}
    marian_files.train_sentencepiece(tmp_path, ["vocab.spm"], **ids)
    options, weights = marian_files.draw("post", "relu", (1, 1), [48], True)
    marian_files.save(tmp_path, options, weights)
    kept = read_npz(tmp_path)
    assert kept.source.names == kept.target.names
    assert kept.source.rows[:4].tolist() == [-1, -1, 0, 1]
    assert build(kept).config.vocab_size == 48 + 2  # padding and BOS are new
    import_marian(tmp_path, tmp_path / "imported")
    source, target = VocabularyPair.load(tmp_path / "imported")
    assert len(source.encode(["the dog"])[0]) > 1
    assert source.encode(["the dog"]) == target.encode(["the dog"])


def changed_option(name, value):
    def change(folder):
        with np.load(folder / "model.npz") as content:
            weights = dict(content)
        options = yaml.safe_load(weights.pop("special:model.yml").tobytes()[:-1])
        marian_files.save(folder, {**options, name: value}, weights)

    return change


def changed_weight(name, value):
    def change(folder):
        with np.load(folder / "model.npz") as content:
            weights = dict(content)
        weights.pop(name, None)
        more = {} if value is None else {name: value}
        np.savez(folder / "model.npz", **weights, **more)

    return change


def shortened(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:500])


@pytest.fixture(scope="module")
def opus(texts, tmp_path_factory):
    return marian_files.write_model(texts, tmp_path_factory.mktemp("opus") / "model").folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "model.npz").unlink(), r"^path must be a directory that holds"),
        (shortened("model.npz"), r"model\.npz must be a whole file of tensors\. Received: "),
        (shortened("source.spm"), r"source\.spm must be a SentencePiece model, and .*vocab\.yml"),
        (shortened("vocab.yml"), r"vocab\.yml must give the ids from 0 on|must be a map in YAML"),
        (lambda folder: (folder / "vocab.yml").unlink(), r"must hold one or two vocabularies"),
        (changed_option("type", "amun"), r"type must be 'transformer', as .* Received: 'amun'"),
        (changed_option("transformer-postprocess", "dhn"), r"-postprocess must be 'an', .*'hn'"),
        (changed_option("transformer-decoder-autoreg", "rnn"), r"autoreg must be 'self-attention'"),
        (changed_option("transformer-ffn-activation", "tanh"), r"activation must be one of relu"),
        (changed_option("transformer-heads", 5), r"model\.npz: d_k must be given, as num_heads"),
        (changed_weight("Wpos", np.zeros((9, 12))), r"hold nothing that .* Received: Wpos"),
        (changed_weight("encoder_l2_self_Wq", None), r"must hold encoder_l2_self_Wq"),
        (changed_weight("Wemb", np.zeros((9, 12))), r"Wemb must fit .* vocabulary.*: \(9, 12\)"),
    ],
)
def test_what_cannot_be_imported(change, message, opus, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(opus, folder)
    change(folder)
    with pytest.raises(InputError, match=message) as error:
        import_marian(folder, tmp_path / "imported")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "imported").exists()
