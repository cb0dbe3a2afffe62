"""A model that was trained with terms uses them with every engine, without constraints."""

import math

import pytest

import keras_transformer as kt
from keras_transformer.kit.exchange.ctranslate2 import export_ctranslate2
from keras_transformer.kit.exchange.saved_model import export_saved_model
from keras_transformer.use.translate import terminology
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.sources.files import FileSource
from tests.program_fixtures import PAIRS, make_model_dir
from tests.restoring import restore

TERMS = {"cat": "katze", "red dog": "rote hund"}
SOURCES = ["the cat", "a big red dog", "the cat <term> sat </term>", "a house", ""]
OPTIONS = {"beam_size": 2, "extra_length": 8}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The same model as a directory, an ensemble with itself, a SavedModel, and for CTranslate2."""
    folder = tmp_path_factory.mktemp("terms")
    paths = []
    for side, lines in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        paths.append(folder / f"train.{side}")
        paths[-1].write_text("".join(f"{line}\n" for line in lines * 5))
    source = FileSource({"train": ([str(paths[0])], [str(paths[1])])})
    config = PreparationConfig(vocab_size=313, max_length=32, augment={"terms": 1.0})
    prepare(source, folder / "data", config)
    make_model_dir(folder / "data", folder / "model", {10: (10, 20)})
    trained = restore(folder / "model")
    card = trained.card.with_options(OPTIONS)
    paths = {name: folder / name for name in ("saved_model", "ctranslate2")}
    export_saved_model(
        trained.models, trained.vocabularies, paths["saved_model"], card, constraints=False
    )
    export_ctranslate2(trained.model, trained.vocabularies, paths["ctranslate2"], card)
    directory = folder / "model"
    return {
        "directory": kt.load(directory, engine="tensorflow", **OPTIONS),
        "ensemble": kt.load([directory, directory], **OPTIONS),
        **{name: kt.load(path) for name, path in paths.items()},
    }


@pytest.mark.slow  # exports a SavedModel
@pytest.mark.parametrize("name", ["ensemble", "saved_model", "ctranslate2"])
def test_every_engine_reads_terms_in_the_source(models, name, monkeypatch):
    monkeypatch.setattr(terminology, "MAX_LOSS", -math.inf)  # nothing is forced
    found = models[name].translate(SOURCES, terminology=TERMS)
    wanted = models["directory"].translate(SOURCES, terminology=TERMS)
    free = models["directory"].translate(SOURCES)
    assert models[name].knows_terms
    for index, (answer, expected) in enumerate(zip(found, wanted, strict=True)):
        assert answer[0].text == expected[0].text
        assert answer[0].log_prob == pytest.approx(expected[0].log_prob, rel=1e-3, abs=1e-4)
        has_term = index < 3
        assert (expected[0].log_prob != pytest.approx(free[index][0].log_prob)) == has_term
    document = "the **cat**. a *big* red dog"
    assert models[name].translate_document(document, "markdown", terminology=TERMS) == models[
        "directory"
    ].translate_document(document, "markdown", terminology=TERMS)
