"""Two exports with different vocabularies and weight types, both also run in a foreign process.

"bpe" is the one that several test files share. It has all default signatures. "wordpiece" has some
of them, and constraints, restrictions and bfloat16 weights.
"""

import dataclasses
import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from keras_transformer.core.config import EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search import matrices
from keras_transformer.core.search.alignment import alignment
from keras_transformer.core.search.compiled_model import attention_maps, compile_model
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.search.engines import xla_programs
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.engines.tensorflow_engine import TensorFlowEngine
from keras_transformer.core.search.ensemble import ensemble_of
from keras_transformer.core.search.weights import read_weights, variables_of
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.model_directory import describe_unknown_training
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange import saved_model
from keras_transformer.kit.exchange.saved_model import export_saved_model
from keras_transformer.kit.exchange.text_graphs import TextGraphs
from keras_transformer.kit.exchange.warm_up import WARM_UP
from keras_transformer.loading import load
from keras_transformer.use.store.card import CARD, FORMAT_VERSION, ModelCard, read_card
from keras_transformer.use.store.decoding import search_settings
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.translator import Translator
from pipelines.prepare.vocabulary import learn_subwords
from tests.refusals import refused
from tests.restoring import restore

TEXT = ["the cat sat on the mat", "a dog ran to the house", "big red cats and small dogs"] * 5
LINES = ["the cat", "", "a dog ran to the house", "  ", "😀 unseen Ω", "x" * 300, "a\tb\x07"]
TARGETS = ["a dog", "the cat", "", "on the mat", "big", "dogs", "x" * 300]
LONG = ["x" * 100_000, "a " * 50_000, "the cat"]
INVALID = [b"cat \xff dog", b"\xc3"]
REPLACED = ["cat \ufffd dog", "\ufffd"]
RESTRICTIONS = {"min_length": 4, "no_repeat_ngram_size": 2, "forbidden_phrases": ("the cat", "s")}
DECODING = DecodingConfig(3, extra_length=4, max_source_length=12, batch_tokens=256, **RESTRICTIONS)
# The other export takes seconds, and most of what differs in it is also tested elsewhere.
KINDS = ("bpe", pytest.param("wordpiece", marks=pytest.mark.slow))
WORDPIECES = 40
SIGNATURES = ("serving_default", "score")
SIGNATURES_OF_IDS = ("search_ids", "constrain_ids", "score_ids", "attention_ids")
# Runs exports where this project cannot be imported, and lists unknown operations.
FOREIGN_PROCESS = """
import pickle, sys
import tensorflow as tf
import tensorflow_text
from tensorflow.python.framework import op_def_registry
assert not [name for name in sys.modules if name.startswith(("keras_transformer", "pipelines"))]
export_dirs, lines, targets, operations = pickle.load(sys.stdin.buffer)
answers = {}
for kind, export_dir in export_dirs.items():
    run = tf.saved_model.load(export_dir).signatures
    answers[kind] = run["serving_default"](text=tf.constant(lines))
answers["score"] = run["score"](source=tf.constant(lines), target=tf.constant(targets))
arrays = {
    name: {key: tensor.numpy() for key, tensor in outputs.items()}
    for name, outputs in answers.items()
}
unknown = [name for name in operations if op_def_registry.get(name) is None]
sys.stdout.buffer.write(pickle.dumps((arrays, unknown)))
"""


def pair_of(tokenizer):
    return VocabularyPair(tokenizer, tokenizer)


def card_of(model, tokenizer, weights="float32"):
    fingerprints = {"vocabulary_fingerprint": tokenizer.fingerprint}
    description = describe_unknown_training(model.config, fingerprints)
    return ModelCard(
        dataclasses.replace(description, preset="tiny"),
        DECODING,
        parameters=model.count_params(),
        checkpoint=CheckpointInfo("step-00000007", 7),
        weights=weights,
        date="2017-06-12",
    )


def signatures_of(folder):
    """Loads the graphs of an export."""
    stored = open_model(ModelPath(folder))
    return stored.load({}).engine.graphs


def make_model(vocab_size):
    keras.utils.set_random_seed(5)
    config = TransformerConfig(vocab_size, num_layers=1, d_model=16, d_ff=8, num_heads=2)
    model = Transformer(config)
    for variable in model.trainable_variables:
        variable.assign(variable * 2.0)
    return model


class MadeWhenAsked(dict):
    """kind -> the result of its function, which is called on first access."""

    def __init__(self, **makers):
        self._makers = makers

    def __missing__(self, kind):
        self[kind] = self._makers[kind]()
        return self[kind]


@pytest.fixture(scope="module")
def parts(exported, untrained, tmp_path_factory):
    """kind -> (model, vocabulary, the folder they were exported to, the result of exporting).

    The model has the weights that the export should compute with, rounded where the export's are.
    """

    def bpe():
        trained = restore(untrained, "average:2")
        return trained.model, trained.vocabularies.target, exported, None

    def wordpiece():
        folder = tmp_path_factory.mktemp("wordpiece")
        tokenizer = learn_subwords(TEXT, "wordpiece", WORDPIECES, folder, seed=1)
        model = make_model(tokenizer.vocab_size)
        result = export_saved_model(
            [model],
            pair_of(tokenizer),
            folder / "export" / "1",
            card_of(model, tokenizer, "bfloat16"),
            constraints=True,
            signatures=SIGNATURES + SIGNATURES_OF_IDS,
        )
        for variable in model.trainable_variables:
            variable.assign(tf.cast(tf.cast(variable.value, tf.bfloat16), tf.float32))
        return model, tokenizer, folder / "export" / "1", result

    return MadeWhenAsked(bpe=bpe, wordpiece=wordpiece)


@pytest.fixture(scope="module")
def foreign(parts, tmp_path_factory):
    """The foreign process's answers, and the operations it does not know."""
    export_dirs = {kind: str(parts[kind][2]) for kind in ("bpe", "wordpiece")}
    operations = sorted(set().union(*(operations_of(path) for path in export_dirs.values())))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    process = subprocess.run(
        [sys.executable, "-c", FOREIGN_PROCESS],
        input=pickle.dumps((export_dirs, LINES, TARGETS, operations)),
        cwd=tmp_path_factory.mktemp("foreign"),
        env=environment,
        capture_output=True,
        check=True,
    )
    return pickle.loads(process.stdout)


@pytest.fixture(scope="module")
def bpe(exported):
    """The export with all signatures, loaded; only its graphs keep it alive."""
    loaded = load(exported)
    gc.collect()
    return loaded


@pytest.fixture(scope="module")
def signatures(exported):
    """All signatures of the "bpe" export, by name."""
    named = signatures_of(exported).named
    gc.collect()
    return named


@pytest.fixture(scope="module")
def exports(parts, bpe):
    """kind -> the export, loaded."""
    return MadeWhenAsked(bpe=lambda: bpe, wordpiece=lambda: load(parts["wordpiece"][2]))


@pytest.fixture(scope="module")
def run(signatures):
    """Runs a signature of the "bpe" export with the same texts, or bytes, for all its inputs."""

    def run_signature(name, texts):
        inputs = signatures[name].structured_input_signature[1]
        return answers_of(signatures[name], **dict.fromkeys(inputs, texts))

    return run_signature


def answers_of(signature, **inputs):
    inputs = {key: tf.constant(texts, tf.string) for key, texts in inputs.items()}
    outputs = signature(**inputs)
    return {key: tensor.numpy() for key, tensor in outputs.items()}


def operations_of(export_dir):
    """Returns all operations in a SavedModel, including those in its functions."""
    content = (Path(export_dir) / "saved_model.pb").read_bytes()
    saved = saved_model_pb2.SavedModel.FromString(content)
    graphs = [meta_graph.graph_def for meta_graph in saved.meta_graphs]
    functions = [function for graph in graphs for function in graph.library.function]
    nodes = [node for graph in graphs for node in graph.node]
    nodes += [node for function in functions for node in function.node_def]
    return {node.op for node in nodes} - {function.signature.name for function in functions}


def graphs_of(model, tokenizer, weights="float32", decoding=DECODING, constraints=True):
    """Makes the graphs for ids in this process."""
    compiled = ensemble_of([compile_model(model, weights)])
    return SearchGraphs(compiled, search_settings(decoding, tokenizer), constraints)


def translator_of(model, tokenizer, weights="float32", decoding=DECODING):
    """Makes a Translator in this process."""
    engine = TensorFlowEngine(graphs_of(model, tokenizer, weights, decoding))
    card = dataclasses.replace(card_of(model, tokenizer), decoding=decoding)
    return Translator(engine, pair_of(tokenizer), card)


@pytest.fixture(scope="module")
def translators(parts):
    def bpe():
        model, tokenizer, export_dir, _ = parts["bpe"]
        return translator_of(model, tokenizer, decoding=read_card(export_dir).decoding)

    def wordpiece():
        return translator_of(*parts["wordpiece"][:2])

    return MadeWhenAsked(bpe=bpe, wordpiece=wordpiece)


@pytest.mark.slow  # a new interpreter
@pytest.mark.parametrize("kind", KINDS)
def test_foreign_process_translates_as_the_library_does(translators, foreign, kind):
    wanted = [best[0] for best in translators[kind].translate(LINES)]
    outputs = foreign[0][kind]
    assert [text.decode() for text in outputs["translation"]] == [best.text for best in wanted]
    np.testing.assert_allclose(
        outputs["score"], [best.score for best in wanted], rtol=1e-4, atol=1e-5
    )


@pytest.mark.slow  # a new interpreter
def test_foreign_process_scores_as_the_library_does(translators, foreign):
    wanted = translators["wordpiece"].score(LINES, TARGETS)
    outputs = foreign[0]["score"]
    np.testing.assert_allclose(
        outputs["log_prob"], [s.log_prob for s in wanted], rtol=1e-4, atol=1e-5
    )
    assert outputs["length"].tolist() == [s.tokens for s in wanted]
    perplexities = [np.exp(-s.log_prob / s.tokens) for s in wanted]
    np.testing.assert_allclose(outputs["perplexity"], perplexities, rtol=1e-4, atol=1e-5)


@pytest.mark.slow  # a new interpreter
def test_operations_are_those_of_tensorflow_and_its_text_package(parts, foreign):
    operations = operations_of(parts["bpe"][2]) | operations_of(parts["wordpiece"][2])
    searched = {"While", "TopKV2", "SentencepieceTokenizeOp", "StaticRegexReplace"}
    assert searched <= operations, "functions are searched"
    assert foreign[1] == []


@pytest.mark.parametrize("signature", ["n_best", "score"])
def test_invalid_bytes_are_replacement_characters(run, signature):
    invalid, replaced = (run(signature, texts) for texts in (INVALID, REPLACED))
    for name in invalid:
        if invalid[name].dtype.kind == "f":
            np.testing.assert_allclose(invalid[name], replaced[name], rtol=1e-5, atol=1e-6)
        else:
            assert np.array_equal(invalid[name], replaced[name]), name


def test_long_lines_are_cut(bpe, run):
    outputs = run("n_best", LONG)
    assert outputs["truncated"].tolist() == [True, True, False]
    assert np.all(np.isfinite(outputs["score"][:, 0]))
    outputs = run("score", LONG)
    assert outputs["length"].tolist()[:2] == [bpe.encoder.target_limit] * 2
    assert outputs["truncated"].tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("signature", "shapes"),
    [
        ("serving_default", dict.fromkeys(("translation", "score", "truncated"), (0,))),
        (
            "n_best",
            {
                **dict.fromkeys(("translation", "score", "log_prob", "length"), (0, 2)),
                "unfinished": (0, 2),
                "truncated": (0,),
            },
        ),
        ("score", dict.fromkeys(("log_prob", "length", "perplexity", "truncated"), (0,))),
    ],
)
def test_empty_batches(run, signature, shapes):
    assert {name: array.shape for name, array in run(signature, []).items()} == shapes


def test_n_best(parts, translators, bpe):
    tokenizer, translator = parts["bpe"][1], translators["bpe"]
    cut = 0
    for found, wanted in zip(bpe.translate(LINES), translator.translate(LINES), strict=True):
        assert [best.text for best in found] == [best.text for best in wanted]
        assert found[0].truncated == wanted[0].truncated
        cut += found[0].truncated
        scores = [best.score for best in wanted]
        np.testing.assert_allclose([best.score for best in found], scores, rtol=1e-4, atol=1e-5)
        for best in found:
            penalty = ((5 + best.tokens) / 6) ** 0.6
            assert best.log_prob / penalty == pytest.approx(best.score, rel=1e-4, abs=1e-5)
    long_lines = sum(len(ids) >= bpe.encoder.source_limit for ids in tokenizer.encode(LINES))
    assert cut == long_lines > 0
    assert bpe.translate([]) == []
    (blank,) = bpe.translate([" "])
    assert blank == [Translation("", 0.0, 0.0, 0)], "and no other beam"


@pytest.mark.parametrize("kind", KINDS)
def test_translations_begin_with_their_prefix(translators, exports, kind):
    prefixes = ["on the", "", "mat", "", "the", "dog", ""]
    answers = [
        holder.translate(LINES, target_prefixes=prefixes)
        for holder in (translators[kind], exports[kind])
    ]
    for prefix, line, wanted, found in zip(prefixes, LINES, *answers, strict=True):
        assert [best.text for best in found] == [best.text for best in wanted]
        scores = [best.score for best in wanted]
        np.testing.assert_allclose([best.score for best in found], scores, rtol=1e-4, atol=1e-5)
        assert all(best.text.startswith(prefix) for best in found) or not line.strip()


@pytest.mark.slow  # the other export
def test_translations_contain_required_phrases(translators, exports):
    phrases = [["dog"], [], ["the", "on"], ["mat"], [], ["and big", "dogs"], []]
    answers = [
        holder["wordpiece"].translate(LINES, required_phrases=phrases)
        for holder in (translators, exports)
    ]
    plain = translators["wordpiece"].translate(LINES)
    for line, required, free, wanted, found in zip(LINES, phrases, plain, *answers, strict=True):
        assert [best.text for best in found] == [best.text for best in wanted]
        scores = [best.score for best in wanted]
        np.testing.assert_allclose([best.score for best in found], scores, rtol=1e-4, atol=1e-5)
        assert all(phrase in found[0].text for phrase in required) or not line.strip()
        assert wanted == free or required
    with refused("required_phrases", "one without them"):
        exports["bpe"].translate(LINES, required_phrases=phrases)


def test_aligned_translations(translators, bpe):
    answers = [holder.translate(LINES, aligned=True) for holder in (translators["bpe"], bpe)]
    plain = bpe.translate(LINES)
    for best, wanted, found in zip(plain, *answers, strict=True):
        assert [answer.text for answer in best] == [answer.text for answer in found]
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_allclose(
                other.pair.log_probs, one.pair.log_probs, rtol=1e-3, atol=1e-4
            )
            assert other.pair._replace(log_probs=[]) == one.pair._replace(log_probs=[])
            assert sum(other.pair.log_probs) == pytest.approx(other.log_prob, rel=1e-3)


def warm_up_requests(export_dir):
    records = tf.data.TFRecordDataset(str(export_dir / WARM_UP)).as_numpy_iterator()
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    return [log.predict_log.request for log in logs]


def test_every_signature_of_texts_is_warmed_up(exported, signatures):
    requests = warm_up_requests(exported)
    names = [request.model_spec.signature_name for request in requests]
    assert names == ["serving_default", "n_best", "score"]
    for request in requests:
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        signature = signatures[request.model_spec.signature_name]
        _, specs = signature.structured_input_signature
        assert set(inputs) == set(specs)
        if request.model_spec.signature_name == "score":
            assert signature(**inputs)["length"].numpy() > [1]


def test_the_default_is_the_first_of_n_best(run):
    best, n_best = run("serving_default", LINES), run("n_best", LINES)
    assert np.array_equal(best["translation"], n_best["translation"][:, 0])
    assert np.array_equal(best["truncated"], n_best["truncated"])
    np.testing.assert_allclose(best["score"], n_best["score"][:, 0], rtol=1e-4, atol=1e-5)


def test_a_large_request_is_answered_in_order(bpe):
    words = ["the", "cat", "sat", "on", "mat", "a", "dog", "ran", "big", "red", "and"]
    generator = np.random.default_rng(3)
    lines = [" ".join(generator.choice(words, n)) for n in generator.integers(0, 9, 20)]
    alone = [bpe.translate([line])[0] for line in lines]
    order = generator.integers(0, 20, 300)
    together = bpe.translate([lines[n] for n in order])
    assert [best[0].text for best in together] == [alone[n][0].text for n in order]
    scores = [alone[n][0].score for n in order]
    np.testing.assert_allclose([best[0].score for best in together], scores, rtol=1e-4)


def test_score_needs_a_target_for_every_source(bpe, signatures):
    assert bpe.score(["a"], ["the cat"])[0].tokens > 1
    with refused("targets", "1 for 2"):
        bpe.score(["a", "b"], ["c"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="a target for every source"):
        answers_of(signatures["score"], source=["a", "b"], target=["c"])
    ids = np.array([[5, EOS_ID], [6, EOS_ID]])
    with refused("target", "2 for 1"):
        bpe.score_ids(ids[:1], ids)


@pytest.mark.parametrize("signature", ["serving_default", "n_best", "score"])
def test_one_text_is_a_batch_of_one(run, signature):
    alone, batch = run(signature, "the cat"), run(signature, ["the cat"])
    assert alone.keys() == batch.keys()
    for name in alone:
        assert np.array_equal(alone[name], batch[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_and_attention(parts, exports, kind):
    model, tokenizer, *_ = parts[kind]
    source, target = "the cat sat", "a dog"
    exported = exports[kind]
    attention = exported.attention(source, target)
    ids = [[*row, EOS_ID] for row in tokenizer.encode([source, target])]
    spellings = {
        "bpe": lambda pieces: "".join(pieces).replace("▁", " ").strip(),
        "wordpiece": lambda pieces: " ".join(pieces).replace(" ##", ""),
    }
    for pieces, text, row in zip(attention[:2], (source, target), ids, strict=True):
        assert pieces[-1] == "</s>"
        assert len(pieces) == len(row)
        assert spellings[kind](pieces[:-1]) == text
    compiled = compile_model(model)
    maps = attention_maps(*compiled.decode_target(*(tf.constant([row]) for row in ids)))
    for name, wanted in maps._asdict().items():
        np.testing.assert_allclose(getattr(attention, name), wanted[0], atol=1e-5)
    layers = [tf.constant(layer[None]) for layer in attention.memory]
    places = alignment([layers], tf.constant(ids[:1]) != PAD_ID)
    assert attention.alignment.tolist() == places[0].numpy().tolist()
    assert max(attention.alignment) < len(ids[0]) - 1


def test_weights_and_vocabulary_are_stored_once(parts):
    model, tokenizer, export_dir, _ = parts["bpe"]
    assert sum(stored_sizes(export_dir, "weights").values()) == model.count_params()
    large = {name for name, size in stored_sizes(export_dir).items() if size > 1}
    assert large == stored_sizes(export_dir, "weights").keys()
    graph = (export_dir / "saved_model.pb").read_bytes()
    assert graph.count(tokenizer.file.read_bytes()) == 2, "for Python, and for TensorFlow Serving"
    for variable in model.trainable_variables:
        values = variable.numpy()
        assert values.size < 20 or values.T.tobytes()[:64] not in graph
    total = size_of(export_dir)
    # Names and shapes of variables, and signatures, take another 30 kB.
    assert total - len(graph) <= 1.05 * 4 * model.count_params() + 30_000
    assert len(graph) <= 2_000_000 + len(tokenizer.file.read_bytes())


def size_of(export_dir):
    return sum(file.stat().st_size for file in export_dir.rglob("*") if file.is_file())


@pytest.mark.slow  # the other export
def test_exporting_tells_the_size(parts):
    _, _, export_dir, result = parts["wordpiece"]
    assert result == {"saved_model": str(export_dir), "bytes": size_of(export_dir)}


def stored_sizes(export_dir, inside=""):
    """Returns name -> number of elements, for variables whose name contains `inside`."""
    reader = tf.train.load_checkpoint(str(export_dir / "variables" / "variables"))
    shapes = reader.get_variable_to_shape_map()
    return {name: int(np.prod(shape)) for name, shape in shapes.items() if inside in name}


@pytest.mark.slow  # the other export
def test_bfloat16_weights(parts):
    model, _, export_dir, _ = parts["wordpiece"]
    reader = tf.train.load_checkpoint(str(export_dir / "variables" / "variables"))
    types = reader.get_variable_to_dtype_map()
    weights = stored_sizes(export_dir, "weights")
    assert {types[name] for name in weights} == {tf.bfloat16}
    assert sum(weights.values()) == model.count_params(), "and no float32 copies"
    card = json.loads((export_dir / CARD).read_text())
    assert (card["weights"], card["parameters"]) == ("bfloat16", model.count_params())
    originals = make_model(model.config.vocab_size)
    pairs = zip(originals.trainable_variables, model.trainable_variables, strict=True)
    assert any(not np.array_equal(wide, narrow) for wide, narrow in pairs), "rounding matters"


@pytest.mark.slow  # another test compares the weights one by one
def test_bfloat16_weights_in_a_graph(parts, translators):
    # Load as TensorFlow Serving does, without this library and without eager execution.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(parts["wordpiece"][2]))
        signature = loaded.signature_def["score"]
        feeds = {"source": LINES, "target": TARGETS}
        feeds = {signature.inputs[name].name: texts for name, texts in feeds.items()}
        log_probs = session.run(signature.outputs["log_prob"].name, feeds)
    wanted = [score.log_prob for score in translators["wordpiece"].score(LINES, TARGETS)]
    np.testing.assert_allclose(log_probs, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.slow  # tests/core/search/test_tensorflow_engine.py searches with int8
def test_int8_weights(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(matrices, "has_int8_instructions", lambda: True)  # on any processor
    model, tokenizer, *_ = parts["wordpiece"]
    export_dir = tmp_path / "export"
    card = card_of(model, tokenizer, "int8")
    names = ["search_ids", "attention_ids"]
    export_saved_model([model], pair_of(tokenizer), export_dir, card, signatures=names)
    card = json.loads((export_dir / CARD).read_text())
    assert card["weights"] == "int8"
    assert card["parameters"] == model.count_params()
    reader = tf.train.load_checkpoint(str(export_dir / "variables" / "variables"))
    types, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
    narrow = [shapes[name] for name in shapes if types[name] == tf.int8]
    scales = sum(columns for _, columns in narrow)
    whole = sum(stored_sizes(export_dir, "weights").values())
    assert whole - scales == model.count_params(), "and no float32 copies"
    matrix_sizes = [
        int(np.prod(variable.shape))
        for variable in model.trainable_variables
        if variable.path.endswith(("kernel", "embeddings"))
    ]
    assert sum(rows * columns for rows, columns in narrow) == sum(matrix_sizes)

    assert "StaticRegexReplace" not in operations_of(export_dir), "and no graphs of texts"
    exported = load(export_dir)
    answers = exported.translate(LINES)
    wanted = translator_of(model, tokenizer, "int8").translate(LINES)
    for one, other in zip(answers, wanted, strict=True):
        assert one[0].text == other[0].text
        assert one[0].score == pytest.approx(other[0].score, abs=1e-3)
    assert exported.translate([]) == []
    assert exported.attention("the cat", "a dog").memory.shape[0] == 1

    monkeypatch.setattr(matrices.op_def_library, "apply_op", None)
    with refused("path", "int8"):
        load(export_dir)


@pytest.fixture(scope="module")
def exported_in_bfloat16(parts, tmp_path_factory):
    """An export without signatures."""
    model, tokenizer, *_ = parts["bpe"]
    folder = tmp_path_factory.mktemp("bfloat16") / "export"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved_model, "_graphs_named", lambda *_: {})
        export_saved_model(
            [model], pair_of(tokenizer), folder, card_of(model, tokenizer, "bfloat16")
        )
    return folder


def test_int8_weights_without_instructions_for_them(parts, tmp_path, monkeypatch, caplog):
    model, tokenizer, *_ = parts["bpe"]
    card = card_of(model, tokenizer, "int8")
    monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})  # none of them runs
    export_saved_model([model], pair_of(tokenizer), tmp_path / "export", card)
    monkeypatch.setattr(matrices, "has_int8_instructions", lambda: False)
    with caplog.at_level("INFO", logger="absl"):
        graphs = load(tmp_path / "export").engine.graphs
    line = "computing int8 weights in float32, as this processor lacks VNNI"
    assert [record.message for record in caplog.records] == [line]
    assert graphs.settings == search_settings(DECODING, tokenizer)
    found, exact = (variables_of(each) for each in (graphs.model.weights, read_weights(model)))
    for variable, original in zip(found, exact, strict=True):
        if len(original.shape) < 2:
            np.testing.assert_array_equal(variable, original)
            continue
        # Half a quantization step: 64 steps reach the largest number of a column.
        bound = np.abs(original).max(axis=0) / 127
        assert np.all(np.abs(variable - original) < bound)
        assert not np.array_equal(variable, original)


@pytest.mark.parametrize(
    ("xla", "devices", "dtype"),
    [("auto", [], tf.float32), ("auto", ["GPU:0"], tf.bfloat16), ("on", [], tf.bfloat16)],
)
def test_what_a_compiled_search_multiplies_in(
    parts, exported_in_bfloat16, monkeypatch, xla, devices, dtype
):
    monkeypatch.setattr(xla_programs, "programs_for", lambda *arguments: arguments[-1])
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: devices)
    make_graphs = load(exported_in_bfloat16, xla=xla).engine.programs
    variables = variables_of(make_graphs().model.weights)
    assert {variable.dtype for variable in variables} == {dtype}
    model, *_ = parts["bpe"]
    for variable, original in zip(variables, variables_of(read_weights(model)), strict=True):
        rounded = tf.cast(original, tf.bfloat16)
        np.testing.assert_array_equal(tf.cast(variable, tf.bfloat16), rounded)


@pytest.mark.slow  # the other export
def test_model_card(parts, exports):
    model, tokenizer, export_dir, _ = parts["wordpiece"]
    card = json.loads((export_dir / CARD).read_text())
    others = {"format_version": card["format_version"], "files": card["files"]}
    assert card == json.loads(json.dumps({**exports["wordpiece"].card.to_json(), **others}))
    assert (card["format_version"], card["date"]) == (FORMAT_VERSION, "2017-06-12")
    assert card["tensorflow"] == tf.__version__
    description, decoding = card["description"], card["decoding"]
    assert (description["task"], description["task_options"]) == ("translation", {})
    assert (card["checkpoint"]["checkpoint"], card["checkpoint"]["step"]) == ("step-00000007", 7)
    limits = (decoding["beam_size"], decoding["alpha"], decoding["max_source_length"])
    assert limits == (3, 0.6, 12)
    assert description["vocabulary_fingerprint"] == tokenizer.fingerprint
    assert card["parameters"] == model.count_params()
    assert (description["preset"], description["model"]["d_model"]) == ("tiny", 16)
    files = [path for path in export_dir.rglob("*") if path.is_file() and path.name != CARD.name]
    sizes = {path.relative_to(export_dir).as_posix(): path.stat().st_size for path in files}
    assert card["files"] == sizes


def test_an_earlier_export_is_not_replaced_without_asking(parts):
    model, tokenizer, export_dir, _ = parts["bpe"]
    with refused("export_dir", export_dir):
        export_saved_model([model], pair_of(tokenizer), export_dir, card_of(model, tokenizer))


def test_signatures_are_the_graphs_of_the_process(parts, bpe, signatures):
    model, tokenizer, export_dir, _ = parts["bpe"]
    decoding = read_card(export_dir).decoding
    graphs = graphs_of(model, tokenizer, decoding=decoding, constraints=False)
    texts = TextGraphs(graphs, pair_of(tokenizer))
    assert signatures.keys() == {*texts.named, *graphs.exported}
    assert bpe.engine.functions == sorted(signatures)


@pytest.mark.slow  # the other export
def test_an_export_of_some_signatures_names_what_it_lacks(parts, exports):
    _, _, export_dir, _ = parts["wordpiece"]
    assert set(exports["wordpiece"].engine.functions) == {*SIGNATURES, *SIGNATURES_OF_IDS}
    with refused("align_ids", "search_ids"):
        exports["wordpiece"].align(["a"], ["b"])
    names = [request.model_spec.signature_name for request in warm_up_requests(export_dir)]
    assert len(names) == len(SIGNATURES) and set(names) == set(SIGNATURES)


@pytest.mark.parametrize(("names", "received"), [([], "none"), (["score", "scroe"], "'scroe'")])
def test_signatures_that_there_are_not(parts, tmp_path, names, received):
    model, tokenizer, _, _ = parts["bpe"]
    arguments = ([model], pair_of(tokenizer), tmp_path / "export", card_of(model, tokenizer))
    with refused("signatures", received):
        export_saved_model(*arguments, signatures=names)
    assert not (tmp_path / "export").exists()


def card_of_version(text):
    return lambda path: path.write_text(text)


def truncated(path):
    path.write_bytes(path.read_bytes()[:100])


def garbage(path):
    path.write_bytes(b"\xff" * path.stat().st_size)


DATA = "variables/variables.data-00000-of-00001"
INDEX = "variables/variables.index"


@pytest.mark.parametrize(
    ("file", "change", "received"),
    [
        (DATA, os.remove, f"{DATA} is missing"),
        (INDEX, truncated, f"{INDEX} has 100 of "),
        ("saved_model.pb", truncated, "saved_model.pb has 100 of "),
        ("saved_model.pb", garbage, ""),
        (DATA, garbage, ""),
        (CARD, os.remove, f"which has no {CARD}"),
        (CARD, card_of_version('{"format_version": 3}'), "of 3"),
        (CARD, card_of_version("{}"), "of None"),
    ],
)
def test_half_copied_or_foreign(parts, tmp_path, file, change, received):
    folder = shutil.copytree(parts["bpe"][2], tmp_path / "copy")
    change(folder / file)
    with refused("path", received) as error:
        load(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize("change", [truncated, card_of_version("[]")])
def test_a_card_that_is_none(parts, tmp_path, change):
    folder = shutil.copytree(parts["bpe"][2], tmp_path / "copy")
    change(folder / CARD)
    with refused(None, place=folder / CARD):
        load(folder)


def test_what_an_export_has_fixed_is_not_changed(exported):
    with refused("beam_size", "5"):
        load(exported, beam_size=5)
    with refused("n_best", "3"):
        load(exported, n_best=3)


def test_scores_of_ids(translators, bpe, parts):
    tokenizer = parts["bpe"][1]
    pairs = ("the cat", "a dog")
    source, target = (tf.constant([[*ids, EOS_ID, 0]]) for ids in tokenizer.encode(list(pairs)))
    wanted = translators["bpe"].score(*([text] for text in pairs))[0].log_prob
    assert bpe.score_ids(source, target) == pytest.approx([wanted], rel=1e-4)
