"""SMaLL-100 in Hugging Face's format, beside its equations in NumPy."""

import json
import shutil

import numpy as np
import pytest

from keras_transformer.importing.hugging_face import read_hugging_face
from keras_transformer.importing.marian import import_marian
from keras_transformer.importing.marian_model import build
from keras_transformer.loading import load
from keras_transformer.vocabulary.pair import VocabularyPair
from tests.importing import hugging_face_files, marian_files
from tests.importing.marian_files import SOURCES
from tests.refusals import refused


@pytest.fixture(scope="module")
def small100(tmp_path_factory):
    """Its folder, options, weights, and number of ids in vocab.json."""
    folder = tmp_path_factory.mktemp("small100")
    return folder, *hugging_face_files.write_small100(folder)


@pytest.fixture(scope="module")
def model_dir(small100, tmp_path_factory):
    path = tmp_path_factory.mktemp("imported") / "model"
    import_marian(small100[0], path)
    return path


def reference_logits(small100, source, target):
    """Computes logits for ids of the files."""
    _, options, weights, _ = small100
    return marian_files.marian_logits(options, weights, source, target, epsilon=1e-5, first=2)


def test_logits(small100):
    kept = read_hugging_face(small100[0])
    source, target = np.random.default_rng(5).integers(4, 60, size=(2, 1, 9), dtype=np.int32)
    target[0, 0] = 1
    rows = kept.source.rows
    ours = np.array(build(kept)({"source": source, "target": target}))[0]
    theirs = reference_logits(small100, rows[source[0]], rows[target[0]])
    np.testing.assert_allclose(ours[:, 2:], theirs[:, rows[2:]], atol=1e-4)


def test_a_source_begins_with_the_target_language(small100, model_dir):
    vocabulary = VocabularyPair.load(model_dir).source
    ((code, *_),) = vocabulary.encode([">>am<< the old woman"])
    # The second of the languages, after the pieces.
    assert read_hugging_face(small100[0]).source.rows[code] == small100[3] + 1
    translator = load(model_dir, beam_size=1)
    assert len(translator.target_languages) == 100
    assert {"de", "ast", "zu"} < set(translator.target_languages)


def test_greedy_search(small100, model_dir):
    rows = read_hugging_face(small100[0]).source.rows
    vocabulary = VocabularyPair.load(model_dir).source
    (best,) = load(model_dir, beam_size=1).translate(SOURCES[:1], to="de")[0]
    (ids,) = vocabulary.encode([f">>de<< {SOURCES[0]}"])
    source, target, log_prob = rows[[*ids, 2]], [2], 0.0
    for _ in range(best.tokens):
        logits = reference_logits(small100, source, target)[-1]
        logits[1] = -np.inf  # padding
        target.append(int(np.argmax(logits)))
        log_prob += logits.max() - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    np.testing.assert_allclose(best.log_prob, log_prob, rtol=1e-4)


def changed(folder, path, **options):
    """A copy with other options; None removes one."""
    shutil.copytree(folder, path)
    config = json.loads((folder / "config.json").read_text()) | options
    config = {name: value for name, value in config.items() if value is not None}
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize("size", [None, 20, 100_000])
def test_a_vocabulary_of_another_size(size, small100, tmp_path):
    with refused("vocab_size", size, "config.json"):
        read_hugging_face(changed(small100[0], tmp_path / "there", vocab_size=size))


def test_m2m_100_and_nllb_are_refused(small100, tmp_path):
    folder = changed(small100[0], tmp_path / "there")
    (folder / "tokenization_small100.py").unlink()
    with refused("model_type", "m2m_100", "config.json", "SMaLL-100"):
        read_hugging_face(folder)
