"""Imported models in use: text, search, scores, exports, and data for training."""

import shutil

import numpy as np
import pytest

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.training.checkpoint_weights import restore_model
from keras_transformer.core.training.model_directory import read_description
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange import marian
from keras_transformer.kit.exchange.foreign_model import build
from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.loading import load
from pipelines.batches.data_set import DataSet
from pipelines.evaluation import evaluate_on
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.sources.files import FileSource
from pipelines.sources.many_languages import source_of_files
from tests.kit.exchange import marian_files
from tests.kit.exchange.marian_files import SOURCES, TARGETS
from tests.refusals import refused


@pytest.fixture(scope="module")
def opus(tmp_path_factory):
    """A model in Marian's own format, and the model directory that was made of it."""
    folder = tmp_path_factory.mktemp("opus")
    texts = folder / "texts"
    texts.mkdir()
    marian_files.write_vocabulary(texts)
    made = marian_files.write_model(texts, folder / "marian")
    made.model_dir = folder / "model"
    import_model(made.folder, made.model_dir)
    return made


@pytest.fixture(scope="module")
def translator(opus):
    return load(opus.model_dir, engine="tensorflow", beam_size=1, alpha=0.0)


def test_model_directory(opus):
    description = read_description(opus.model_dir)
    assert (description.preset, description.task) == ("imported", "translation")
    assert description.max_length == 512
    model, _ = restore_model(opus.model_dir)
    built = build(marian.read(opus.folder))
    assert model.config == built.config == description.model
    for ours, theirs in zip(model.trainable_variables, built.trainable_variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_text_becomes_ids_and_text_again(opus):
    vocabulary = VocabularyPair.load(opus.model_dir).source
    encoded = vocabulary.encode([">>de<< the old woman", "bücher 漢 zz"])
    spelled = [[vocabulary.pieces[id_] for id_ in ids] for ids in encoded]
    assert spelled[0][0] == ">>de<<" and "".join(spelled[0][1:]) == "▁the▁old▁woman"
    # "ü" is no piece of the source, but of the target: one vocabulary has both.
    pieces = marian_files.pieces_of(opus.folder)
    assert "ü" in pieces and "ü" in spelled[1] and "<unk>" in spelled[1]
    assert marian.read(opus.folder).source.rows[encoded[0][0]] == pieces.index(">>de<<")


@pytest.mark.slow  # another imported model
def test_a_model_of_several_target_languages_is_told_which(opus, translator, tmp_path):
    folder = shutil.copytree(opus.folder, tmp_path / "marian")
    ids = (folder / "vocab.yml").read_text(encoding="utf-8").replace("'!': ", "'>>cs<<': ")
    assert ">>cs<<" in ids  # in place of a piece, so that the sizes are those of the weights
    (folder / "vocab.yml").write_text(ids, encoding="utf-8")
    with refused("languages", "en,de"):
        import_model(folder, tmp_path / "model", ["en", "de"])
    import_model(folder, tmp_path / "model", ["en"])
    several = load(tmp_path / "model", beam_size=1)
    assert set(several.target_languages) == {"de", "cs"}
    known = several.card.languages
    assert {str(each) for each in known.directions} == {"en-de", "en-cs"}
    text = SOURCES[0]
    named = several.translate([text], to="de")
    assert named == several.translate([f">>de<< {text}"])
    with refused("to", text):
        several.translate([text])
    (tmp_path / "a.en").write_text(f"{text}\n")
    (tmp_path / "a.de").write_text(f"{TARGETS[0]}\n", encoding="utf-8")
    files = ([str(tmp_path / "a.en")], [str(tmp_path / "a.de")])
    source = source_of_files({"train": files, "test": files}, {"train": ["de"]})
    sides = [str(tmp_path / "model" / f"{side}_vocabulary.pieces") for side in ("source", "target")]
    config = PreparationConfig(tokenizer="pieces", vocabulary=sides, shared_vocabulary=False)
    prepare(source, tmp_path / "data", config)
    assert list(evaluate_on(DataSet.open(tmp_path / "data"), several)["directions"]) == ["en-de"]
    # A model with one code does not need it.
    assert translator.target_languages == ()


@pytest.mark.slow  # test_greedy_search.py has every option
def test_greedy_search(opus, translator):
    """The most probable ids one after the other, of the NumPy reference, as text."""
    rows = marian.read(opus.folder).source.rows
    vocabulary = VocabularyPair.load(opus.model_dir).source
    for text, ids in zip(SOURCES[:2], vocabulary.encode(SOURCES[:2]), strict=True):
        (best,) = translator.translate([text])[0]
        source, target, log_prob = rows[[*ids, EOS_ID]], [None], 0.0
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


def test_data_prepared_with_its_vocabularies(opus, translator, tmp_path):
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
    assert fingerprint == VocabularyPair.load(opus.model_dir).target.fingerprint
    ours = [score.log_prob for score in translator.score(SOURCES, TARGETS)]
    batches = DataSet.open(tmp_path / "data").evaluation_batches("test", 4096)
    found = [translator.score_ids(*batch) for batch in batches]
    np.testing.assert_allclose(np.sort(np.concatenate(found)), np.sort(ours), rtol=1e-4)
