"""Marian models in both formats, beside Marian's equations in NumPy.

Hugging Face's own code is the reference of test_hugging_face.py.
"""

import shutil
import types

import ctranslate2
import numpy as np
import pytest
import tensorflow as tf
import yaml

from keras_transformer.errors import InputError
from keras_transformer.importing import marian
from keras_transformer.loading import load
from keras_transformer.vocabulary.pair import VocabularyPair
from pipelines.datasets import evaluation_batches
from pipelines.preparation import PreparationConfig, prepare
from pipelines.records import read_metadata
from pipelines.sources import FileSource
from tests.importing import marian_files
from tests.importing.marian_files import SOURCES, TARGETS

VARIANTS = {  # norm, activation, layers, number of embeddings, whether softmax and target are tied
    "OPUS-MT": ("post", "swish", (2, 2), 1, True),
    "pre-norm": ("pre", "relu", (2, 1), 2, True),
    "untied": ("post", "gelu", (1, 2), 1, False),
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder with source.spm, target.spm and vocab.yml of the sentences."""
    folder = tmp_path_factory.mktemp("texts")
    marian_files.train_sentencepiece(folder)
    pieces = marian_files.pieces_of(folder)
    ids = {piece: i for i, piece in enumerate(pieces)}
    (folder / "vocab.yml").write_text(yaml.safe_dump(ids), encoding="utf-8")
    return folder


def directory(texts, folder, variant="OPUS-MT"):
    """A model in Marian's own format: its folder, options, weights and number of ids."""
    norm, activation, layers, count, tied = VARIANTS[variant]
    shutil.copytree(texts, folder)
    size = len(marian_files.pieces_of(folder))
    options, weights = marian_files.draw(norm, activation, layers, [size] * count, tied)
    marian_files.save(folder, options, weights)
    return types.SimpleNamespace(folder=folder, options=options, weights=weights, size=size)


@pytest.fixture(scope="module")
def opus(texts, tmp_path_factory):
    """The first of the variants, and the model directory that was made of it."""
    folder = tmp_path_factory.mktemp("opus")
    made = directory(texts, folder / "marian")
    marian.import_marian(made.folder, folder / "model")
    made.model_dir = folder / "model"
    made.translator = load(made.model_dir, beam_size=1, alpha=0.0)
    return made


def assert_same_logits(made, **settings):
    kept = marian.read_npz(made.folder)
    rows = [side.rows for side in kept.sides]
    rng = np.random.default_rng(5)
    source, target = rng.integers(2, made.size + 2, size=(2, 1, 9), dtype=np.int32)
    target[0, 0] = 1
    ours = np.array(marian.build(kept)({"source": source, "target": target}))[0]
    there = rows[0][source[0]], [None, *rows[1][target[0, 1:]]]
    theirs = marian_files.marian_logits(made.options, made.weights, *there, **settings)
    np.testing.assert_allclose(ours[:, 2:], theirs[:, rows[1][2:]], atol=1e-4)
    assert (ours[:, :2] < -1e4).all()  # padding and BOS


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits(variant, texts, tmp_path):
    made = directory(texts, tmp_path / "model", variant)
    assert_same_logits(made)
    # The reference tells such models from those of Hugging Face, whose sinusoids are others.
    with pytest.raises(AssertionError):
        assert_same_logits(made, steps=marian_files.D_MODEL // 2)


def test_text_becomes_ids_and_text_again(opus):
    translator = opus.translator
    pieces = marian_files.pieces_of(opus.folder)
    target = {piece: i for i, piece in enumerate(pieces)}
    found = translator.graphs["tokenize"](text=[">>de<< the old woman", "bücher 漢 zz"])
    spelled = [[piece.decode() for piece in row if piece] for row in found["pieces"].numpy()]
    assert spelled[0][0] == ">>de<<" and "".join(spelled[0][1:]) == "▁the▁old▁woman</s>"
    # "ü" is no piece of the source, but of the target: one vocabulary has both.
    assert "ü" in target and "ü" in spelled[1] and "<unk>" in spelled[1]
    kept = marian.read_npz(opus.folder)
    assert [kept.sides[0].rows[i] for i in found["ids"].numpy()[0][:1]] == [pieces.index(">>de<<")]


def test_greedy_search(opus):
    """The most probable ids one after the other, of the NumPy reference, as text."""
    kept = marian.read_npz(opus.folder)
    translator = opus.translator
    found = translator.graphs["tokenize"](text=SOURCES[:2])
    for text, ids, length in zip(SOURCES, found["ids"].numpy(), found["length"], strict=False):
        (best,) = translator.translate([text])[0]
        source, target, log_prob = kept.sides[0].rows[ids[:length]], [None], 0.0
        for _ in range(best.tokens):
            logits = marian_files.marian_logits(opus.options, opus.weights, source, target)[-1]
            target.append(int(np.argmax(logits)))
            log_prob += logits.max() - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
        pieces = marian_files.pieces_of(opus.folder)
        end = -1 if target[-1] == 0 else None
        spelled = "".join(pieces[i] for i in target[1:end]).replace("<unk>", " ⁇ ")
        assert best.text == spelled.replace("▁", " ").strip()
        np.testing.assert_allclose(best.log_prob, log_prob, rtol=1e-4)
    # The target's vocabulary is the target's SentencePiece model.
    assert translator.score(SOURCES[:1], TARGETS[:1])[0].tokens < len(TARGETS[0])


def test_vocabulary_in_a_saved_model(opus, tmp_path):
    vocabulary = VocabularyPair.load(opus.model_dir).source
    module = tf.Module()
    module.vocabulary = vocabulary
    text, ids = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.int32)
    module.encode = tf.function(lambda text: vocabulary.encode_tensor(text).to_tensor(), [text])
    module.decode = tf.function(vocabulary.decode_tensor, [ids])
    tf.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    lines = [*SOURCES, ">>de<< bücher"]
    encoded = loaded.encode(tf.constant(lines))
    assert [row[row > 0].tolist() for row in encoded.numpy()] == vocabulary.encode(lines)
    assert [text.decode() for text in loaded.decode(encoded).numpy()][:-1] == SOURCES


def test_ctranslate2(opus, call_program, tmp_path):
    """Another engine finds the same log-probabilities of the same weights."""
    folder = ["--model_dir", str(opus.model_dir), "--export_dir", str(tmp_path / "export")]
    done = call_program("export", *folder, "--format=ctranslate2")
    assert done.code == 0, done.errors
    engine = ctranslate2.Translator(folder[3], intra_threads=1)
    vocabularies = VocabularyPair.load(opus.model_dir)
    tokens = [
        [[p.decode() for p in vocabulary.pieces_tensor([ids])[0].numpy()] for ids in encoded]
        for vocabulary, lines in zip(vocabularies, (SOURCES, TARGETS), strict=True)
        for encoded in [vocabulary.encode(lines)]
    ]
    theirs = [sum(score.log_probs) for score in engine.score_batch(*tokens)]
    ours = [score.log_prob for score in opus.translator.score(SOURCES, TARGETS)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_data_prepared_with_its_vocabularies(opus, tmp_path):
    files = [tmp_path / "source.txt", tmp_path / "target.txt"]
    for file, lines in zip(files, (SOURCES, TARGETS), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    paths = [[str(file)] for file in files]
    source = FileSource({"train": paths, "test": paths})
    sides = ("source", "target")
    vocabularies = [str(opus.model_dir / f"{side}_vocabulary.pieces") for side in sides]
    kind = {"tokenizer": "pieces", "vocabulary": vocabularies, "shared_vocabulary": False}
    prepare(source, tmp_path / "data", PreparationConfig(max_length=64, **kind))
    fingerprint = read_metadata(tmp_path / "data").fingerprint
    assert fingerprint == opus.translator.card["vocabulary_fingerprint"]
    ours = [score.log_prob for score in opus.translator.score(SOURCES, TARGETS)]
    batches = evaluation_batches(tmp_path / "data", "test", 4096)
    found = [opus.translator.score_ids(*batch) for batch in batches]
    np.testing.assert_allclose(np.sort(np.concatenate(found)), np.sort(ours), rtol=1e-4)


def test_one_sentencepiece_model_as_vocabulary(texts, tmp_path):
    """Marian's own vocabularies: *.spm, whose ids are those of its pieces."""
    folder = tmp_path / "model"
    folder.mkdir()
    ids = {"bos_id": -1, "eos_id": 0, "unk_id": 1}
    marian_files.train_sentencepiece(folder, ["vocab.spm"], **ids)
    options, weights = marian_files.draw("post", "relu", (1, 1), [48], True)
    marian_files.save(folder, options, weights)
    kept = marian.read_npz(folder)
    assert kept.sides[0].pieces == kept.sides[1].pieces
    assert kept.sides[0].rows[:4].tolist() == [-1, -1, 0, 1]
    marian.import_marian(folder, tmp_path / "imported")
    assert load(tmp_path / "imported").graphs["lengths"](text=["the dog"])["length"] > 1


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "model.npz").unlink(), r"--path must be a directory that holds"),
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
    shutil.copytree(opus.folder, folder)
    change(folder)
    with pytest.raises(InputError, match=message) as error:
        marian.import_marian(folder, tmp_path / "imported")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "imported").exists()
