"""Firefox's models. Its engine, the package fxtranslate, translated as docs/diary.md says."""

import dataclasses
import shutil

import numpy as np
import pytest

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange import firefox, marian_binary
from keras_transformer.kit.exchange.foreign_model import build
from keras_transformer.kit.exchange.importing import import_model
from tests import numpy_reference, small_models
from tests.kit.exchange.marian_files import SOURCES, TARGETS, train_sentencepiece
from tests.refusals import refused

SETTINGS = {
    **{"d_model": 64, "d_ff": 128, "decoder_layers": 1, "positions": "marian"},
    **{"attention_bias": True, "logits_bias": True, "starts_with_zeros": True},
    "decoder_self_attention": "ssru",
}
SPECIAL_IDS = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
OPTIONS = DecodingConfig(beam_size=1, alpha=0.0, extra_length=9)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder with this library's vocabularies for both sides, and sentences for calibration."""
    folder = tmp_path_factory.mktemp("texts")
    train_sentencepiece(folder, ["source.model", "target.model"], **SPECIAL_IDS)
    (folder / "sentences.txt").write_text("".join(f"{line}\n" for line in SOURCES))
    return folder


def vocabularies_of(texts, shared):
    target = Subwords(texts / "target.model")
    return VocabularyPair(target if shared else Subwords(texts / "source.model"), target)


def exported(model, vocabularies, texts, folder):
    card = dataclasses.replace(small_models.card_of(model.config, OPTIONS), weights="int8")
    sentences = str(texts / "sentences.txt")
    return firefox.export_firefox(model, vocabularies, folder, card, calibration=sentences)


def random_model(**settings):
    model = small_models.small_model(**{"vocab_size": 48, **SETTINGS, **settings})
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(variable + rng.normal(scale=0.1, size=variable.shape))
    return model


@pytest.fixture(scope="module")
def student(texts, tmp_path_factory):
    """A model with a shared vocabulary, and its export."""
    model, folder = random_model(), tmp_path_factory.mktemp("student") / "export"
    exported(model, vocabularies_of(texts, True), texts, folder)
    return model, folder


def assert_equal_but_for_rounding(model, folder):
    foreign = firefox.read(folder)
    with_same_dropout = dataclasses.replace(foreign.config, dropout=model.config.dropout)
    assert with_same_dropout == model.config
    for variable, other in zip(
        model.trainable_variables, build(foreign).trainable_variables, strict=True
    ):
        is_matrix = variable.path.endswith(("/kernel", "/embeddings"))
        step = np.abs(variable).max() / 127 if is_matrix else 0
        np.testing.assert_allclose(other, variable, rtol=0, atol=0.5001 * step, err_msg=other.path)
    return foreign


def test_round_trip(student, texts, tmp_path):
    model, folder = student
    foreign = assert_equal_but_for_rounding(model, folder)
    assert foreign.source is foreign.target
    names = {file.name for file in folder.iterdir()}
    assert names == {"model.intgemm.alphas.bin", "vocab.spm", "assets.extra"}
    assert (folder / "vocab.spm").read_bytes() == (texts / "target.model").read_bytes()
    import_model(folder, tmp_path / "imported")
    imported = VocabularyPair.load(tmp_path / "imported").target
    assert imported.encode(TARGETS) == Subwords(texts / "target.model").encode(TARGETS)


def test_a_vocabulary_for_each_side(texts, tmp_path):
    model = random_model(source_vocab_size=48)
    exported(model, vocabularies_of(texts, False), texts, tmp_path / "export")
    foreign = assert_equal_but_for_rounding(model, tmp_path / "export")
    assert foreign.source.sentencepiece_model == (texts / "source.model").read_bytes()
    stored = marian_binary.read_binary(foreign.file)
    name = "decoder_Wemb_QuantMultA"  # int8, as its name has "Wemb": its largest level is 127
    assert stored[name].type == marian_binary.INTGEMM8
    output = marian_binary.array_of("none_QuantMultA", stored["none_QuantMultA"])
    np.testing.assert_allclose(marian_binary.array_of(name, stored[name]), output, rtol=1e-6)


def test_a_model_from_elsewhere_keeps_its_ids(student, texts, tmp_path):
    """Firefox's own vocabularies have neither padding nor BOS; their rows are new here."""
    ids = {"bos_id": -1, "eos_id": 0, "unk_id": 1}
    train_sentencepiece(tmp_path, ["vocab.spm"], vocab_size=48, **ids)
    _, folder = student
    shutil.copy(folder / firefox.MODEL, tmp_path)
    foreign = firefox.read(tmp_path)
    model = build(foreign)
    assert model.config.vocab_size == 50
    assert foreign.source.rows[:4].tolist() == [-1, -1, 0, 1]
    bias = np.array(model.logits_embedding.bias)
    assert (bias[:2] == -3e4).all() and (np.abs(bias[2:]) < 10).all()
    import_model(tmp_path, tmp_path / "imported")
    again = VocabularyPair.load(tmp_path / "imported")
    exported(model, again, texts, tmp_path / "export")
    kept = marian_binary.read_binary(tmp_path / "export" / firefox.MODEL)
    first = marian_binary.read_binary(folder / firefox.MODEL)
    for name in ("Wemb", "decoder_l1_rnn_W", "decoder_l1_rnn_Wf", "encoder_l1_ffn_W2"):
        assert kept[name] == first[name]


def test_scales_of_activations(student, texts):
    """Those of the first layer's inputs, embeddings with positions, in NumPy."""
    model, folder = student
    stored = marian_binary.read_binary(folder / firefox.MODEL)
    scales = {
        name: marian_binary.array_of(name, each)
        for name, each in stored.items()
        if name.endswith("_QuantMultA")
    }
    matrix = np.array(model.embedding.embeddings, np.float64)
    maxima = []
    for ids in Subwords(texts / "target.model").encode(SOURCES):
        positions = numpy_reference.positional_encoding(len(ids) + 1, 64, 62)
        maxima.append(np.abs(matrix[[*ids, EOS_ID]] * 8 + positions).max())
    expected = 127 / (np.mean(maxima) + 1.1 * np.std(maxima))
    for letter in "qkv":
        np.testing.assert_allclose(
            scales[f"encoder_l1_self_W{letter}_QuantMultA"], [expected], rtol=1e-5
        )
    matrices = {name for name, each in stored.items() if each.type == marian_binary.INTGEMM8}
    matrices = {name for name in matrices if not name.endswith("_QuantMultA")} | {"none"}
    assert scales.keys() == {f"{name}_QuantMultA" for name in matrices}
    assert all(0 < value[0] < 1e5 for value in scales.values())


def changed_file(change):
    def apply(folder):
        file = folder / firefox.MODEL
        tensors = marian_binary.read_binary(file)
        change(tensors)
        file.write_bytes(marian_binary.binary_file(tensors))

    return apply


def without(name):
    return changed_file(lambda tensors: tensors.pop(name))


def with_options(find, replacement):
    def change(tensors):
        text = tensors[firefox.OPTIONS].data.rstrip(b"\0").decode()
        assert find in text
        tensors[firefox.OPTIONS] = marian_binary.text_tensor(text.replace(find, replacement))

    return changed_file(change)


BOMB = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


def other_vocabulary(folder):
    train_sentencepiece(folder, ["vocab.spm"], vocab_size=40, **SPECIAL_IDS)


@pytest.mark.parametrize(
    ("change", "argument", "received", "place"),
    [
        (without("decoder_l1_rnn_Wf"), "decoder_l1_rnn_Wf", "none", firefox.MODEL),
        (without(firefox.OPTIONS), None, "without", firefox.MODEL),
        (
            with_options('"rnn"', '"self-attention"'),
            "transformer-decoder-autoreg",
            '"self-attention"',
            firefox.MODEL,
        ),
        (with_options('"ssru"', '"gru"'), "dec-cell", '"gru"', firefox.MODEL),
        (with_options('"dan"', '"dhan"'), "transformer-postprocess", '"han"', firefox.MODEL),
        (with_options("dec-cell", f"a0: &a0 x\n{BOMB}dec-cell"), None, "alias", firefox.MODEL),
        (other_vocabulary, "Wemb", "(48, 64)", firefox.MODEL),
        (lambda folder: (folder / "vocab.spm").unlink(), None, "none", ""),
        (lambda folder: (folder / firefox.MODEL).write_bytes(b"x" * 99), "path", "with 0", None),
    ],
)
def test_what_cannot_be_imported(change, argument, received, place, student, tmp_path):
    folder = shutil.copytree(student[1], tmp_path / "model")
    change(folder)
    with refused(argument, received, None if place is None else folder / place):
        import_model(folder, tmp_path / "imported")
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({"decoder_self_attention": "attention"}, "decoder_self_attention=attention"),
        ({"starts_with_zeros": False}, "starts_with_zeros=False"),
        ({"d_model": 80}, "d_model=80"),
    ],
)
def test_what_cannot_be_exported(settings, received, texts, tmp_path):
    model = random_model(**settings)
    with refused("model", received):
        exported(model, vocabularies_of(texts, True), texts, tmp_path / "export")


def test_pieces_that_the_engine_cannot_multiply_by(texts, tmp_path):
    train_sentencepiece(tmp_path, ["vocabulary.model"], vocab_size=45, **SPECIAL_IDS)
    pair = VocabularyPair(*[Subwords(tmp_path / "vocabulary.model")] * 2)
    with refused("vocabulary", "45", about="8"):
        exported(random_model(vocab_size=45), pair, texts, tmp_path / "export")


@pytest.mark.parametrize(("text", "received"), [(None, "None"), ("\n\n", "2 empty lines")])
def test_sentences_are_needed(text, received, student, texts, tmp_path):
    model, _ = student
    file = None
    if text is not None:
        file = str(tmp_path / "empty.txt")
        (tmp_path / "empty.txt").write_text(text)
    card = dataclasses.replace(small_models.card_of(model.config, OPTIONS), weights="int8")
    with refused("calibration", received):
        firefox.export_firefox(
            model, vocabularies_of(texts, True), tmp_path / "export", card, calibration=file
        )
