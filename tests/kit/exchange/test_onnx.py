"""Compares the graphs with the Keras model, and the example's search with ours."""

import dataclasses
import importlib.util
import io
import json
import shutil
import sys
from pathlib import Path

import keras
import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
import tensorflow as tf

from keras_transformer.core.config import EOS_ID, TransformerConfig
from keras_transformer.core.model.transformer import shift_right
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.search.matrices import int8_matrix
from keras_transformer.core.search.weights import Linear
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange import onnx_graph
from keras_transformer.kit.exchange.onnx import export_onnx
from keras_transformer.kit.exchange.onnx_graph import Tensor
from keras_transformer.kit.exchange.onnx_model import FLOAT, INT32, Writer
from keras_transformer.use.store.card import read_card
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from pipelines.prepare.vocabulary import learn_subwords
from tests import small_models
from tests.refusals import refused

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "onnx_translate.py"
VOCAB_SIZE = 30
LENGTH = 18  # OpenVINO uses other kernels from 16 keys on
LIMITS = {"extra_length": 6, "max_source_length": 7}
TOKENS = ["[PAD]", "[BOS]", "[EOS]", "[UNK]", *(f"w{i}" for i in range(4, VOCAB_SIZE))]
# Every value of every field that affects a model's computation.
OPTIONS = {
    "paper": {},
    "modern": {"norm": "pre", "positions": "rotary", "activation": "swiglu", "d_k": 6, "d_v": 5},
    "Marian's": {
        "positions": "marian",
        "activation": "swish",
        "attention_bias": True,
        "logits_bias": True,
        "tie_embeddings": False,
        "scale_embeddings": False,
        "norm_epsilon": 0.1,
    },
    "SSRU": {
        "decoder_self_attention": "ssru",
        "starts_with_zeros": True,
        "positions": "marian",
        "decoder_layers": 1,
        "attention_bias": True,
        "logits_bias": True,
    },
    "SSRU, window": {
        "decoder_self_attention": "ssru",
        "positions": "learned",
        "max_positions": LENGTH,
        "norm": "pre",
        "attention_window": 3,
    },
    "M2M-100's": {"positions": "m2m100", "norm": "pre", "attention_bias": True},
    "OpenNMT's": {"norm": "pre", "encoder_reads_eos": False},
    "learned, window, two vocabularies": {
        "positions": "learned",
        "max_positions": LENGTH,
        "attention_window": 3,
        "source_vocab_size": 20,
        "decoder_layers": 1,
        "activation": "gelu",
        "logits_bias": True,
    },
}


def load_example():
    spec = importlib.util.spec_from_file_location("onnx_translate", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_example()


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    file = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    file.write_text("".join(f"{token}\n" for token in TOKENS))
    return VocabularyPair(*[Subwords(file)] * 2)


def random_model(options, scale=1.0):
    """Makes a model with all weights changed from their initial values, biases included."""
    model = small_models.small_model(vocab_size=VOCAB_SIZE, scale=scale, **options)
    for variable in model.trainable_variables:
        variable.assign(variable + 0.1 * keras.random.normal(variable.shape, seed=1))
    return model


@pytest.fixture(scope="module")
def paper(vocabularies, tmp_path_factory):
    """A model with default options, and its export."""
    model, folder = random_model({}), tmp_path_factory.mktemp("paper") / "export"
    exported(model, vocabularies, folder)
    return model, folder


def exported(model, vocabularies, folder, weights="float32"):
    card = small_models.card_of(model.config, DecodingConfig(**LIMITS))
    export_onnx(model, vocabularies, folder, dataclasses.replace(card, weights=weights))
    return example.Model(folder, onnxruntime.InferenceSession)


def random_sources(config, seed=3):
    """Draws lists of ids with EOS, of several lengths."""
    rng = np.random.default_rng(seed)
    size = config.source_vocab_size or config.vocab_size
    return [[*rng.integers(4, size, length).tolist(), EOS_ID] for length in (5, 1, 6, 3, 0, 4)]


def log_probabilities(model, sources, targets):
    """Computes log-probabilities with the graphs, for targets [B, K, T]: float32 [B, K, T, V]."""
    sentences, beams, length = targets.shape
    rows = sentences * beams
    memory, cache = model.encode(sources), model.empty
    token, parent, found = [example.BOS] * rows, [0] * rows, []
    for position in range(length):
        values, cache = model.step(token, parent, memory, cache)
        found.append(values)
        token, parent = targets[:, :, position].ravel(), range(rows)
    return np.stack(found, axis=1).reshape(sentences, beams, length, -1)


def log_probabilities_of_keras(model, sources, targets):
    sentences, beams, length = targets.shape
    source = np.repeat(small_models.padded(sources).numpy(), beams, axis=0)
    target = shift_right(tf.constant(targets.reshape(-1, length)))
    logits = model({"source": tf.constant(source), "target": target})
    return tf.nn.log_softmax(logits).numpy().reshape(sentences, beams, length, -1)


class OpenVINO:
    """Runs a graph like onnxruntime.InferenceSession, for docs/examples/onnx_translate.py."""

    def __init__(self, file):
        settings = {"INFERENCE_PRECISION_HINT": "f32", "SNIPPETS_MODE": "DISABLE"}
        self._model = openvino.compile_model(file, "CPU", settings)

    def run(self, _, inputs):
        found = self._model(inputs)
        return [found[output] for output in self._model.outputs]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    "session",
    [
        pytest.param(onnxruntime.InferenceSession, id="onnxruntime"),
        pytest.param(OpenVINO, id="OpenVINO", marks=pytest.mark.slow),
    ],
)
def test_every_option_of_the_configuration(session, options, vocabularies, tmp_path):
    model = random_model(OPTIONS[options])
    exported(model, vocabularies, tmp_path / "export")
    graphs = example.Model(tmp_path / "export", session)
    sources = random_sources(model.config)
    targets = np.random.default_rng(4).integers(4, VOCAB_SIZE, (len(sources), 2, LENGTH), np.int32)
    log_probs = log_probabilities(graphs, sources, targets)
    expected = log_probabilities_of_keras(model, sources, targets)
    np.testing.assert_allclose(log_probs, expected, atol=1e-5)
    assert expected.std() > 0.5, "the model distinguishes tokens"


@pytest.mark.parametrize("kind", ["attention", "ssru"])
def test_parents_and_leaving_sentences(kind, vocabularies, tmp_path):
    """A row continues its parent's row, wherever either is in the batch."""
    model = random_model({"decoder_self_attention": kind})
    graphs = exported(model, vocabularies, tmp_path / "export")
    sources = random_sources(model.config)
    memory = graphs.encode(sources)
    expected = log_probabilities_of_keras(model, sources, np.array([[[7, 8, 9]]] * len(sources)))
    # Two hypotheses per sentence continue the first one; then the second hypotheses, and half of
    # the sentences, are dropped.
    count = len(sources)
    _, cache = graphs.step([example.BOS] * count, [0] * count, memory, graphs.empty)
    token, parent = [7, 5] * count, np.repeat(range(count), 2)
    _, cache = graphs.step(token, parent, memory, cache)
    staying = [5, 2, 0]
    memory = {name: values[staying] for name, values in memory.items()}
    found, _ = graphs.step([8, 8, 8], [2 * place for place in staying], memory, cache)
    np.testing.assert_allclose(found, expected[staying, 0, 2], atol=1e-5)


# With these biases for EOS, some hypotheses end and others do not.
@pytest.mark.parametrize(("beams", "eos_bias"), [(1, 2.0), (3, 1.0)])
def test_example_searches_as_the_library_does(beams, eos_bias, vocabularies, tmp_path):
    options = OPTIONS["learned, window, two vocabularies"]
    model = random_model({**options, "max_positions": 9}, scale=2.0)
    model.logits_embedding.bias.assign(tf.one_hot(EOS_ID, VOCAB_SIZE) * eos_bias)
    graphs = exported(model, vocabularies, tmp_path / "export")
    sources = random_sources(model.config)
    settings = small_models.settings_of(beams, 0.8, **LIMITS)
    best = small_models.search(model, small_models.padded(sources), settings)
    found = example.search(graphs, sources, beams, 0.8)
    for row, hypotheses in enumerate(found):
        lengths, scores = best.length.numpy()[row], best.score.numpy()[row]
        exist = scores > -np.inf
        expected = [best.ids.numpy()[row, k, : lengths[k]].tolist() for k in np.flatnonzero(exist)]
        assert [ids for _, ids in hypotheses] == expected
        np.testing.assert_allclose([score for score, _ in hypotheses], scores[exist], atol=1e-4)
    ended = [ids[-1:] == [EOS_ID] for hypotheses in found for _, ids in hypotheses]
    assert any(ended) and not all(ended)


def test_int8_products_by_hand():
    """A row of inputs is quantized to 256 levels including 0, a column of weights to 129."""
    rng = np.random.default_rng(1)
    rows, kernel = rng.normal(size=(3, 5)).astype("f"), rng.normal(size=(5, 4)).astype("f")
    bias = rng.normal(size=4).astype("f")
    writer = Writer(TransformerConfig(VOCAB_SIZE))
    linear = Linear(int8_matrix(kernel), tf.Variable(bias))
    product, vectors = writer.linear(linear, "rows"), writer.look_up(linear.matrix, "token")
    inputs = [Tensor("rows", FLOAT, [3, 5]), Tensor("token", INT32, [2])]
    outputs = [Tensor(product, FLOAT, [3, 4]), Tensor(vectors, FLOAT, [2, 5])]
    model = writer.graph.model("products", inputs, outputs)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    token = np.array([3, 0], np.int32)
    product, vectors = session.run(None, {"rows": rows, "token": token})
    step = (max(rows.max(), 0) - min(rows.min(), 0)) / 255
    weight_step = abs(kernel).max(axis=0) / 64
    rounded = np.round(kernel / weight_step) * weight_step
    levels = np.round(rows / step)  # the zero point is a whole number of levels
    np.testing.assert_allclose(product, levels * step @ rounded + bias, atol=1e-5)
    np.testing.assert_allclose(vectors, rounded.T[token], atol=1e-6)


def test_int8_is_close_to_float32_and_smaller(vocabularies, tmp_path):
    model = random_model({"d_model": 64, "d_ff": 64, "positions": "rotary", "norm": "pre"})
    found, sizes = [], []
    sources = random_sources(model.config)
    targets = np.random.default_rng(4).integers(4, VOCAB_SIZE, (len(sources), 2, 6), np.int32)
    for weights in ("float32", "int8"):
        graphs = exported(model, vocabularies, tmp_path / weights, weights)
        found.append(log_probabilities(graphs, sources, targets))
        initializers = onnx.load(tmp_path / weights / "decoder.onnx").graph.initializer
        sizes.append(sum(len(tensor.raw_data) for tensor in initializers))
        assert graphs.card["weights"] == weights
    assert 0 < np.abs(found[1] - found[0]).mean() < 0.1 * found[0].std()
    assert 0.25 < sizes[1] / sizes[0] < 0.35


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_tied_matrix_is_stored_once_in_a_file(weights, vocabularies, tmp_path):
    model = random_model({"d_model": 32, "d_ff": 4, "num_layers": 1, "d_k": 2, "d_v": 2})
    exported(model, vocabularies, tmp_path / "export", weights)
    graph = onnx.load(tmp_path / "export" / "decoder.onnx").graph
    large = [each for each in graph.initializer if VOCAB_SIZE in each.dims and 32 in each.dims]
    assert [list(each.dims) for each in large] == [[32, VOCAB_SIZE]]


def test_directory(paper, vocabularies):
    model, folder = paper
    card = json.loads((folder / "assets.extra" / "model_card.json").read_text())
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    files = {"encoder.onnx", "decoder.onnx", "vocabulary.txt"}
    assert names == files | {"assets.extra/model_card.json"}
    assert card["files"].keys() == files
    assert (card["onnx"], card["weights"]) == (onnx.__version__, "float32")
    for name in ("encoder", "decoder"):
        graph = onnx.load(folder / f"{name}.onnx")
        (opset,) = graph.opset_import  # only the standard's operators
        assert (opset.domain, opset.version, graph.ir_version) == ("", 17, 8)
    assert read_card(folder).format == "onnx"
    with refused("path", "of format onnx", about="saved_model"):
        open_model(ModelPath(folder))
    with refused("export_dir", folder):
        exported(model, vocabularies, folder)


def damaged(folder, damage):
    decoder = folder / "decoder.onnx"
    if damage == "cut short":
        decoder.write_bytes(decoder.read_bytes()[:-1])
    elif damage == "missing":
        decoder.unlink()
    else:
        (folder / "assets.extra" / "model_card.json").unlink()


@pytest.mark.parametrize("damage", ["cut short", "missing", "no card"])
def test_example_refuses_damaged_exports(damage, paper, tmp_path):
    folder = shutil.copytree(paper[1], tmp_path / "export")
    damaged(folder, damage)
    with pytest.raises(SystemExit) as caught:
        example.Model(folder, onnxruntime.InferenceSession)
    line = str(caught.value)
    assert ("decoder.onnx" if damage != "no card" else str(folder)) in line and "\n" not in line


@pytest.mark.parametrize("package", ["onnxruntime", "sentencepiece"])
def test_example_says_which_package_is_missing(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as caught:
        example.main(tmp_path)
    assert f"pip install {package}" in str(caught.value)


def test_package_is_an_extra(vocabularies, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with refused("onnx", about="pip install"):
        export_onnx(None, vocabularies, tmp_path / "export", None)


def test_what_cannot_be_exported(paper, vocabularies, tmp_path, monkeypatch):
    model, _ = paper
    with refused("weights", "bfloat16"):
        exported(model, vocabularies, tmp_path / "export", "bfloat16")
    assert onnx_graph.LARGEST_FILE < 2**31  # the limit for protobuf messages
    monkeypatch.setattr(onnx_graph, "LARGEST_FILE", 1000)
    with refused("model", about="1,000 bytes"):
        exported(model, vocabularies, tmp_path / "export")
    assert not (tmp_path / "export").exists()


def test_example_translates_text(tmp_path, monkeypatch, capsys):
    lines = ["the cat sat on the mat", "", "a dog ran to the house"]
    vocabulary = learn_subwords(lines * 5, "bpe", 300, tmp_path, seed=1)
    pair = VocabularyPair(vocabulary, vocabulary)
    model = small_models.small_model(vocab_size=300)
    exported(model, pair, tmp_path / "export")
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    example.main(tmp_path / "export")
    translator = small_models.translator_with(model, pair, DecodingConfig(**LIMITS))
    expected = [translations[0].text for translations in translator.translate(lines)]
    assert capsys.readouterr().out.splitlines() == expected
    assert expected[1] == "" and expected[0] and expected[2]
