"""The same model from its directory, an export and a .keras file, in Python and in every program.

A translation model and a parsing model, both with random weights.
"""

import asyncio
import dataclasses
import gc
import hashlib
import json
import shutil
import weakref

import keras
import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

import keras_transformer as kt
from keras_transformer import loading
from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import TASKS, SamplingConfig
from keras_transformer.core.search.engines import graphs as search_graphs
from keras_transformer.kit.exchange import saved_model
from keras_transformer.kit.exchange.ctranslate2 import export_ctranslate2
from keras_transformer.kit.exchange.saved_model import export_saved_model
from keras_transformer.kit.parsing.parser import Parser
from keras_transformer.kit.parsing.trees import parse_trees
from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.use.store.ensemble import Ensemble
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.minimum_risk import by_utility
from pipelines.prepare.metadata import read_metadata, write_metadata
from pipelines.prepare.vocabulary import learn_subwords
from tests.kit.serving.running import client_of
from tests.program_fixtures import make_model_dir
from tests.refusals import check_line, refused
from tests.restoring import restore

BEAMS = 3
HOLDERS = ("model_dir", "saved_model", "keras")
# The functions of an export that a translator calls.
SIGNATURES = ["search_ids", "score_ids", "align_ids", "attention_ids"]
TREES = [
    "( (S (NP-SBJ (DT the) (NN dog)) (VP (VBZ barks) (NP (-NONE- *)))) )",
    "( (S (NP (NNS cells)) (VP (VBP bind) (NP (NN f-LRB-x-RRB-)))) )",
    "( (FRAG (NP (NN house))) )",
]
TEXTS = {
    "translation": ["the cat sat", "", "a (red) dog ran to the house"],
    "parsing": ["the dog barks", "", "cells bind f(x) (red)"],
}
TARGETS = {
    "translation": "die katze sass",
    "parsing": "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
}


@pytest.fixture(scope="module", autouse=True)
def _short_answers():
    """Models with random weights do not end their answers."""
    with pytest.MonkeyPatch.context() as patch:
        for task, most in (("translation", 8), ("parsing", 20)):
            patch.setitem(TASKS, task, dataclasses.replace(TASKS[task], extra_length=most))
        yield


@pytest.fixture(scope="module")
def treebank(call_program, tmp_path_factory):
    """A data directory of a few trees."""
    folder = tmp_path_factory.mktemp("treebank")
    (folder / "all.mrg").write_text("\n".join(TREES * 20))
    (folder / "test.mrg").write_text("\n".join(TREES))
    done = call_program(
        "prepare_data",
        *("--dataset=treebank", f"--train_trees={folder / 'all.mrg'}", "--tree_words=tags"),
        *(f"--test_trees={folder / 'test.mrg'}", f"--data_dir={folder / 'data'}"),
        *("--vocab_size=310", "--max_length=40"),
    )
    assert done.code == 0, done.errors
    return folder / "data"


@pytest.fixture(scope="module")
def separate(call_program, prepared, tmp_path_factory):
    """A data directory of sentences, with a vocabulary for each side."""
    folder = tmp_path_factory.mktemp("separate")
    files = {}
    for side, language, size in (("source", "en", 285), ("target", "de", 290)):
        text = (prepared.parent / f"train.{language}").read_text().splitlines()
        files[f"vocabulary_{side}"] = learn_subwords(text, "bpe", size, folder, 1, name=side).file
    done = call_program(
        "prepare_data",
        *(f"--{split}_source={prepared.parent / split}.en" for split in ("train", "test")),
        *(f"--{split}_target={prepared.parent / split}.de" for split in ("train", "test")),
        *("--dataset=files", "--shared_vocabulary=false", f"--data_dir={folder / 'data'}"),
        *(f"--vocabulary={','.join(map(str, files.values()))}", "--max_length=32"),
    )
    assert done.code == 0, done.errors
    return folder / "data"


@pytest.fixture(scope="module")
def data_dirs(separate, treebank):
    """Of translation with a vocabulary for each side, of parsing with one for both."""
    return {"translation": separate, "parsing": treebank}


@pytest.fixture(scope="module")
def places(data_dirs, tmp_path_factory):
    """task -> holder -> the path of the model."""
    found = {}
    for task in TASKS:
        folder = tmp_path_factory.mktemp(task)
        make_model_dir(data_dirs[task], folder / "model", {10: (3, 1.0)})
        trained = restore(folder / "model")
        card = trained.card.with_options({"beam_size": BEAMS})
        card = dataclasses.replace(card, date="2017-06-12")
        export = (trained.models, trained.vocabularies, folder / "export", card)
        export_saved_model(*export, signatures=SIGNATURES)
        trained.model.save(folder / "model" / "model.keras")
        found[task] = {
            "model_dir": folder / "model",
            "saved_model": folder / "export",
            "keras": folder / "model" / "model.keras",
        }
    return found


@pytest.fixture(scope="module")
def translators(places):
    """task -> holder -> its translator, whose first translations are certain.

    That of the .keras file has the graphs of the model directory: they are traced once.
    """
    found = {}
    for task, paths in places.items():
        options = {"engine": "tensorflow", "beam_size": BEAMS, "n_best": 1}
        translator = kt.load(paths["model_dir"], **options)
        with pytest.MonkeyPatch.context() as patch:
            graphs = translator.engine.graphs
            patch.setattr(search_graphs, "SearchGraphs", lambda *_, shared=graphs: shared)
            of_file = kt.load(paths["keras"], **options)
        assert of_file.config == translator.config
        found[task] = {
            "model_dir": translator,
            "saved_model": kt.load(paths["saved_model"], n_best=1),
            "keras": of_file,
        }
    return found


@pytest.fixture(params=TASKS)
def task(request):
    return request.param


@pytest.fixture
def programs(monkeypatch, call_program, places, translators, task):
    """Calls a program for each holder; models are loaded, and their graphs traced, only once."""

    def load_once(stored, options, needs_tensorflow):
        (path,) = stored.where.paths
        (holder,) = (name for name in HOLDERS if str(places[task][name]) == path)
        return translators[task][holder]

    monkeypatch.setattr(loading, "translator_of", load_once)

    def call(name, *arguments, **options):
        for holder in HOLDERS:
            flag = "saved_model" if holder == "saved_model" else "model_dir"
            place = f"--{flag}={places[task][holder]}"
            own = [argument.format(holder=holder) for argument in arguments]
            done = call_program(name, place, *own, **options)
            assert done.code == 0, done.errors
            yield done.result or json.loads(done.errors.splitlines()[-1]), done.output

    return lambda *arguments, **options: list(call(*arguments, **options))


def same(answers):
    """Whether all are equal, but for the rounding of numbers."""
    first, *others = answers
    for other in others:
        assert [best.text for best in other] == [best.text for best in first]
        for numbers in ("score", "log_prob", "tokens"):
            values = [[getattr(best, numbers) for best in answer] for answer in (first, other)]
            np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-5)
    return first


def test_a_keras_file_holds_the_same_model(places, task):
    found, wanted = (restore(places[task][holder]) for holder in ("keras", "model_dir"))
    assert found.model.config == wanted.model.config
    assert found.vocabularies.fingerprints == wanted.vocabularies.fingerprints
    assert found.card.description == wanted.card.description
    for weight, same in zip(found.model.weights, wanted.model.weights, strict=True):
        np.testing.assert_array_equal(weight, same)


def test_answers_are_the_same(translators, task):
    texts = TEXTS[task]
    answers = [translator.translate(texts) for translator in translators[task].values()]
    found = [same(rows) for rows in zip(*answers, strict=True)]
    blank = found[1][0]
    assert (blank.text, blank.score, blank.log_prob, blank.tokens) == ("", 0.0, 0.0, 0)
    if task == "parsing":
        (tree,) = parse_trees([found[2][0].text], "answer")
        assert tree.words() == ["cells", "bind", "f-LRB-x-RRB-", "-LRB-red-RRB-"]
        for translator in translators[task].values():
            assert [str(tree or "") for tree in translator.parse(texts)] == [
                best[0].text for best in found
            ]


def test_minimum_risk_of_whatever_holds_a_model(places):
    texts, of_task = TEXTS["translation"], places["translation"]
    options = {"engine": "tensorflow", "mbr": "chrf", "n_best": 1}
    model = kt.load(of_task["model_dir"], beam_size=BEAMS, **options)
    export = kt.load(of_task["saved_model"], mbr="chrf", n_best=1)
    answers = [each.translate(texts) for each in (model, export)]
    decoding = dataclasses.replace(export.config, mbr=None)
    export.card = dataclasses.replace(export.card, decoding=decoding)
    answers.append([by_utility(found, "chrf", sampled=False) for found in export.translate(texts)])
    found = [same(rows) for rows in zip(*answers, strict=True)]
    assert found[0][0].score > 0 and found[1][0] == Translation("", 0.0, 0.0, 0)
    with refused("mbr", "a parsing model"):
        kt.load(places["parsing"]["saved_model"], mbr="chrf")


def test_scores_are_the_same(translators, task):
    pairs = [TEXTS[task], [TARGETS[task]] * 3]
    scores = [translator.score(*pairs) for translator in translators[task].values()]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], rtol=1e-4, atol=1e-5)
    # The last tree's tokens are fewer subwords than its brackets.
    assert all(score.log_prob < 0 for score in scores[0])


def test_each_side_has_its_vocabulary(translators, separate):
    names = ("source_vocabulary.model", "target_vocabulary.model")
    processors = [SentencePieceProcessor(model_file=str(separate / name)) for name in names]
    assert [each.vocab_size() for each in processors] == [285, 290]
    text, target = TEXTS["translation"][0], TARGETS["translation"]
    source_ids, target_ids = (
        np.array([[*each.encode(line), 2]], "int32")
        for each, line in zip(processors, (text, target), strict=True)
    )
    assert processors[1].encode(text) != processors[0].encode(text)  # or nothing is shown here
    for translator in translators["translation"].values():
        attention = translator.attention(text, target)
        pieces = [attention.source_pieces, attention.target_pieces]
        for each, line, found in zip(processors, (text, target), pieces, strict=True):
            assert found == [*each.encode(line, out_type=str), "</s>"]
        (score,) = translator.score([text], [target])
        assert score.tokens == target_ids.shape[1]
        assert score.log_prob == pytest.approx(
            translator.score_ids(source_ids, target_ids)[0], rel=1e-4
        )
        for vocabulary, each in zip(translator.vocabularies, processors, strict=True):
            assert vocabulary.encode([target]) == [each.encode(target)]


def test_data_of_another_source_vocabulary(
    translators, places, separate, monkeypatch, call_program, tmp_path
):
    other = shutil.copytree(separate, tmp_path / "other")
    (other / "source_vocabulary.model").write_bytes(b"another")
    metadata = read_metadata(separate)
    fingerprint = hashlib.sha256(b"another").hexdigest()
    write_metadata(other, dataclasses.replace(metadata, source_fingerprint=fingerprint))
    translator = translators["translation"]["model_dir"]
    monkeypatch.setattr(loading, "translator_of", lambda *_: translator)
    model_dir = places["translation"]["model_dir"]
    done = call_program("evaluate", f"--model_dir={model_dir}", f"--data_dir={other}")
    assert done.code == 1
    check_line(done.errors, "--data_dir", other)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_directory_with_another_vocabulary(places, tmp_path, side):
    model_dir = shutil.copytree(places["translation"]["model_dir"], tmp_path / "model")
    others = {"source": "target", "target": "source"}
    name = f"{side}_vocabulary.model"
    shutil.copy(
        places["translation"]["model_dir"] / f"{others[side]}_vocabulary.model", model_dir / name
    )
    argument = {"source": "source_vocabulary", "target": "vocabulary"}[side]
    with refused(argument, "other content", model_dir):
        restore(model_dir)
    with refused(None, None, model_dir / name, "subwords"):
        restore(model_dir / "model.keras")


def test_brackets_are_one_input_however_they_are_written(translators):
    for translator in translators["parsing"].values():
        (written, spelled) = translator.translate(["bind f(x)", "bind f-LRB-x-RRB-"])
        assert written[0].text == spelled[0].text
        assert written[0].score == pytest.approx(spelled[0].score, abs=1e-5)
        assert translator.attention("f(x)", "(NP (NN f-LRB-x-RRB-))").source_pieces == (
            translator.attention("f-LRB-x-RRB-", "(NP NN )NP").source_pieces
        )


def test_attention_is_the_same(translators, task):
    text, target = TEXTS[task][0], TARGETS[task]
    first, *others = (found.attention(text, target) for found in translators[task].values())
    assert first.source_pieces[-1] == first.target_pieces[-1] == "</s>"
    if task == "parsing":
        spelled = "".join(first.target_pieces).replace("▁", " ").strip()
        assert spelled == "(S (NP DT NN )NP (VP VBZ )VP )S</s>"
    for other in others:
        assert other[:2] == first[:2]
        for maps in zip(first[2:], other[2:], strict=True):
            np.testing.assert_allclose(*maps, atol=1e-5)


def test_translate(programs, task):
    stdin = "\n".join(TEXTS[task]).encode()
    (first, output), *others = programs("translate", "--scores", stdin=stdin)
    rows = [line.split("\t") for line in output.splitlines()]
    assert [rows[1], len(rows)] == [["0.000000", ""], 3]
    assert first["lines"] == 3
    for _, other in others:
        found = [line.split("\t") for line in other.splitlines()]
        assert [text for _, text in found] == [text for _, text in rows]
        np.testing.assert_allclose(
            [float(score) for score, _ in found], [float(score) for score, _ in rows], atol=1e-4
        )


def test_evaluate(programs, data_dirs, task, places):
    results = [result for result, _ in programs("evaluate", f"--data_dir={data_dirs[task]}")]
    for result in results:
        result.pop("seconds")
        if result.pop("checkpoint") == "model.keras":  # which knows no step
            result.update(step=10, validation_loss=1.0)
    assert ("f1" if task == "parsing" else "bleu") in results[0]
    for other in results[1:]:
        assert other.keys() == results[0].keys()
        for name, value in results[0].items():
            wanted = pytest.approx(value, rel=1e-4) if isinstance(value, float) else value
            assert other[name] == wanted, name
    kept = places[task]["model_dir"] / "evaluation-test.json"
    assert json.loads(kept.read_text())["beam_size"] == BEAMS
    kept.unlink()


def test_attention(programs, tmp_path, task):
    arguments = (f"--source={TEXTS[task][2]}", f"--output={tmp_path}/{{holder}}.html")
    results = [result for result, _ in programs("attention", *arguments)]
    for name in ("source_pieces", "target_pieces", "translation"):
        assert results[0][name] == results[1][name] == results[2][name]


def test_serve(translators, task):
    async def answers(translator):
        service = Service(translator, Limits(), None)
        async with client_of(service) as client:
            texts = {"texts": TEXTS[task]}
            answer = await (await client.post("/translate", json=texts)).json()
            pair = {"source": texts["texts"][0], "target": answer["translations"][0][0]["text"]}
            attention = await (await client.post("/attention", json=pair)).json()
            card = await (await client.get("/model")).json()
            return answer["translations"], attention, card

    first, *others = [asyncio.run(answers(found)) for found in translators[task].values()]
    assert first[2]["task"] == task and first[2]["beam_size"] == BEAMS
    for translations, attention, card in others:
        for best, wanted in zip(translations, first[0], strict=True):
            assert best[0]["text"] == wanted[0]["text"]
            assert best[0]["score"] == pytest.approx(wanted[0]["score"], abs=1e-4)
        assert attention["target_pieces"] == first[1]["target_pieces"]
        for name in ("task", "task_options", "config", "parameters"):
            assert card[name] == first[2][name]


def test_the_model_of_an_export(places, task, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})  # none of them is run
    wanted, export_dir = restore(places[task]["model_dir"]), places[task]["saved_model"]
    narrow = tmp_path / "narrow"
    card = dataclasses.replace(wanted.card, weights="bfloat16")
    export_saved_model(wanted.models, wanted.vocabularies, narrow, card)
    for path, kind, beams in (
        (export_dir, "float32", BEAMS),
        (narrow, "bfloat16", TASKS[task].beam_size),
    ):
        restored = restore(path)
        models = (restored.model, wanted.model)
        for variable, original in zip(*[m.trainable_variables for m in models], strict=True):
            assert variable.path == original.path
            exported = original.numpy().astype(kind).astype("float32")
            np.testing.assert_array_equal(variable, exported)
        assert restored.model.config == wanted.model.config
        assert restored.vocabularies.fingerprints == wanted.vocabularies.fingerprints
        assert [v.kind for v in restored.vocabularies] == [v.kind for v in wanted.vocabularies]
        assert restored.card.description == wanted.card.description
        options = restored.card.decoding
        assert (options.alpha, options.beam_size) == (TASKS[task].alpha, beams)
    assert len(restore([export_dir, narrow]).models) == 2


@pytest.mark.parametrize("path", [None, 3, [], ["a", None], {"a"}])
def test_what_is_no_path_is_refused(path):
    with refused("path", about="list"):
        kt.load(path)


def test_a_keras_model_is_told_where_to_go():
    model = keras.Sequential([keras.Input((1,))])
    with refused("path", about="model.save"):
        kt.load(model)


INNER = "weights[6]"  # the inner matrix of the encoder's feed-forward network


def test_exports_without_a_model_to_read(places, tmp_path):
    card, pieces = "assets.extra/model_card.json", "assets.extra/source_vocabulary.model"
    variables = "variables/variables.data-00000-of-00001"
    known = json.loads((places["translation"]["saved_model"] / card).read_text())
    files = {name: size for name, size in known["files"].items() if name != pieces}

    def damaged(name, *parts, **fields):
        """A copy whose card has other fields, refused by an error with these parts."""
        path = tmp_path / name
        if not path.exists():
            shutil.copytree(places["translation"]["saved_model"], path)
        (path / card).write_text(json.dumps({**known, **fields}))
        with refused(*parts) as error:
            restore(path)
        assert "\n" not in str(error.value)
        return path

    first = tmp_path / "a"
    path = damaged("a", None, "int8", first, weights="int8")
    two = [{"checkpoint": "a"}, {"checkpoint": "b"}]
    damaged("a", None, "an ensemble", first, ensemble=two)
    description = {**known["description"], "vocabulary_fingerprint": "0"}
    damaged("a", None, "another", first / card, "vocabulary", description=description)
    damaged("a", "path", "3", None, "format_version 5", format_version=3)
    for setting, *parts in (
        ({"d_ff": 17}, INNER, "(16, 16)", first, "(16, 17)"),
        ({"num_layers": 2}, None, "27", first, "52"),
        ({"vocab_size": 10**9}, None, None, first / card, "weights"),
    ):
        config = {**known["description"]["model"], **setting}
        description = {**known["description"], "model": config}
        damaged("a", "description.model", "another", first / card, description=description)
        print_of_it = TransformerConfig(**config).fingerprint
        damaged("a", *parts, description=description, config_fingerprint=print_of_it)
    content = (path / variables).read_bytes()
    middle = len(content) // 2
    (path / variables).write_bytes(content[:middle] + b"damaged" + content[middle + 7 :])
    damaged("a", "checkpoint", "variables, with damaged or missing files")
    (path / variables).write_bytes(content[:-1])
    damaged("a", "path", variables, None, "complete")
    path = shutil.copytree(places["translation"]["saved_model"], tmp_path / "b")
    (path / pieces).unlink()
    damaged("b", None, "vocabulary.model", path / "assets.extra", files=files)


def test_an_ensemble_of_other_vocabularies(places):
    paths = [places[task]["model_dir"] for task in TASKS]
    with refused(None, "others", paths[1], str(paths[0])):
        kt.load(paths)


def test_a_checkpoint_of_a_directory(places, translators):
    model_dir = places["translation"]["model_dir"]
    path = model_dir / "checkpoints" / "step-00000010"
    loaded = kt.load(path, engine="tensorflow", beam_size=BEAMS)
    latest = translators["translation"]["model_dir"]
    assert loaded.checkpoint == latest.checkpoint
    assert loaded.score(["the cat"], ["die katze"]) == latest.score(["the cat"], ["die katze"])


def test_a_model_is_compiled_with_the_settings_of_its_training(places, tmp_path):
    model_dir = shutil.copytree(places["translation"]["model_dir"], tmp_path / "model")
    content = json.loads((model_dir / "config.json").read_text())
    content["training"] |= {
        **{"warmup_steps": 10, "learning_rate": 0.003, "decay": "cosine", "clip_norm": 0.5},
        **{"adam_beta_1": 0.8, "adam_beta_2": 0.9, "adam_epsilon": 1e-7, "label_smoothing": 0.2},
    }
    (model_dir / "config.json").write_text(json.dumps(content))
    model = kt.load(model_dir).model
    adam = model.optimizer
    assert float(adam.learning_rate) == pytest.approx(0.003 / 10)  # of the first step
    assert float(adam._learning_rate(39)) == pytest.approx(0.003 / 2)  # as no end is known
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.8, 0.9, 1e-7)
    assert adam.global_clipnorm == 0.5
    assert model.loss.label_smoothing == 0.2


def test_a_translation_model_does_not_parse(translators):
    assert isinstance(translators["parsing"]["saved_model"], Parser)
    for translator in translators["translation"].values():
        with refused("parse", "a translation model"):
            translator.parse(["the cat"])


def test_a_keras_file_without_its_directory(places, tmp_path):
    shutil.copy(places["parsing"]["keras"], tmp_path / "model.keras")
    with refused(None, "none", tmp_path, "vocabulary.model"):
        kt.load(tmp_path / "model.keras")
    shutil.copy(places["parsing"]["model_dir"] / "vocabulary.model", tmp_path)
    loaded = kt.load(tmp_path / "model.keras")
    assert (loaded.card.description.task, loaded.config.beam_size) == ("translation", 4)
    model = keras.models.load_model(tmp_path / "model.keras")
    model.encoder.layers[0].feed_forward.inner_dense.quantize("int8")
    model.save(tmp_path / "model.keras")
    with refused(None, "quantized", tmp_path / "model.keras", "float"):
        kt.load(tmp_path / "model.keras")
    (tmp_path / "model.keras").write_bytes(b"no model")
    with refused(None, "not a Keras file", tmp_path / "model.keras"):
        kt.load(tmp_path / "model.keras")


@pytest.mark.parametrize(
    ("path", "argument", "received", "place"),
    [
        ("absent", "path", "absent, which does not exist", None),
        ("absent.keras", None, "No such file", "absent.keras"),
        ("", "path", "''", None),
        (["absent", ""], "path", "''", None),
        ("absent/checkpoints/step-1", "path", "absent", None),
    ],
)
def test_what_is_no_model(path, argument, received, place):
    with refused(argument, received, place) as error:
        kt.load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_option_that_there_is_not(places, holder):
    with refused("options", "'beams'", about="beam_size, alpha"):
        kt.load(places["translation"][holder], beams=3)


@pytest.mark.parametrize(
    ("options", "argument", "received"),
    [
        ({"beam_size": 0}, "beam_size", 0),
        ({"beam_size": "4"}, "beam_size", '"4"'),
        ({"sampling": {"top_k": 3}}, "sampling", '"top_k": 3'),
        ({"forbidden_phrases": "a b"}, "forbidden_phrases", '"a b"'),
        ({"forbidden_phrases": 3}, "forbidden_phrases", 3),
        ({"forbidden_phrases": ["a", 3]}, "forbidden_phrases[1]", 3),
        ({"device": "gpu"}, "device", '"gpu"'),
        ({"device": "cuda"}, "device", "no GPU"),
        ({"xla": "yes"}, "xla", '"yes"'),
        ({"xla": "on", "sampling": SamplingConfig()}, "xla", "on"),
    ],
)
def test_options_of_other_values(places, options, argument, received):
    with refused(argument, received):
        kt.load(places["translation"]["model_dir"], **options)


def test_what_was_read_is_kept_once(places, monkeypatch):
    """Of the Keras model, nothing is left when the weights are in the layout of decoding."""
    read, read_all = [], Ensemble.restore

    def restore_and_remember(ensemble):
        trained = read_all(ensemble)
        read.extend(weakref.ref(model) for model in trained.models)
        return trained

    monkeypatch.setattr(Ensemble, "restore", restore_and_remember)
    translator = kt.load([places["translation"]["model_dir"]] * 2, beam_size=2)
    gc.collect()
    assert read and all(model() is None for model in read)
    (score,) = translator.score(["the cat"], ["die katze"])
    assert score.tokens > 0


def test_ctranslate2_gives_the_same(places, task, tmp_path):
    """With a vocabulary for each side, and as trees."""
    model_dir = places[task]["model_dir"]
    trained = restore(model_dir)
    card = trained.card.with_options({"beam_size": 1})
    export_ctranslate2(trained.model, trained.vocabularies, tmp_path / "export", card)
    load = kt.load_parser if task == "parsing" else kt.load
    translator = load(tmp_path / "export")
    answers = translator.translate(TEXTS[task], scores=False)
    ours = load(model_dir, engine="tensorflow", beam_size=1)
    assert answers == ours.translate(TEXTS[task], scores=False)
    kind = "Parser" if task == "parsing" else "TextTranslator"
    assert repr(translator) == f"{kind}(step-00000010, ctranslate2)"
    assert isinstance(kt.load(tmp_path / "export"), Parser) == (task == "parsing")
    if task == "parsing":
        with refused("mbr", "a parsing model"):
            kt.load(tmp_path / "export", mbr="chrf")
