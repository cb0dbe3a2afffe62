"""M2M-100, NLLB-200 and SMaLL-100 in Hugging Face's format, beside their equations in NumPy."""

import json
import shutil
import types

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange import hugging_face
from keras_transformer.kit.exchange.ctranslate2 import export_ctranslate2
from keras_transformer.kit.exchange.foreign_model import build
from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.loading import load
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from tests.kit.exchange import hugging_face_files, marian_files
from tests.kit.exchange.marian_files import SOURCES
from tests.refusals import check_line, refused

# The directions of texts in one batch.
DIRECTIONS = {
    "SMaLL-100": [("", "de"), ("", "am"), ("", "zu")],
    "M2M-100": [("en", "de"), ("zu", "am"), ("de", "en")],
    "NLLB-200": [("eng_Latn", "deu_Latn"), ("ace_Arab", "ace_Latn"), ("deu_Latn", "eng_Latn")],
}


def written(folder, variant):
    """A model: its folder, options, weights and number of pieces."""
    folder.mkdir()
    options, weights, count = hugging_face_files.write_m2m100(folder, variant)
    return types.SimpleNamespace(
        variant=variant, folder=folder, options=options, weights=weights, count=count
    )


@pytest.fixture(scope="module", params=DIRECTIONS)
def there(request, tmp_path_factory):
    return written(tmp_path_factory.mktemp("there") / "model", request.param)


@pytest.fixture(scope="module")
def model_dir(there, tmp_path_factory):
    path = tmp_path_factory.mktemp("imported") / "model"
    import_model(there.folder, path)
    return path


def coded_texts(variant):
    """A text for each direction, with its codes."""
    texts = []
    for text, (source, target) in zip(SOURCES, DIRECTIONS[variant], strict=False):
        codes = [target, source] if source else [target]
        texts.append(" ".join([*(f">>{code}<<" for code in codes), text]))
    return texts


def ids_there(there, text):
    """The ids of the files that the encoder reads, and with which the decoder begins."""
    rows = hugging_face.read(there.folder).source.rows
    (ids,) = VocabularyPair.load(there.model_dir).source.encode([text])
    source = rows[[*ids, EOS_ID]].tolist()
    return (source, [2]) if there.variant == "SMaLL-100" else (source[1:], [2, source[0]])


def reference_log_probs(there, source, target):
    """Log-probabilities after each of the ids of the files; padding has none."""
    logits = marian_files.marian_logits(
        there.options, there.weights, source, target, epsilon=1e-5, first=2
    )
    logits[:, 1] = -np.inf
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))


@pytest.fixture(scope="module")
def there_and_here(there, model_dir):
    there.model_dir = model_dir
    return there


def greedy(there, text, length):
    """The ids of the files, and their log-probability."""
    source, target = ids_there(there, text)
    begin, log_prob = len(target), 0.0
    while len(target) == begin or (target[-1] != 2 and len(target) < begin + length):
        log_probs = reference_log_probs(there, source, target)[-1]
        target.append(int(np.argmax(log_probs)))
        log_prob += log_probs[target[-1]]
    return target[begin:], log_prob


def test_logits_of_small100(tmp_path):
    there = written(tmp_path / "model", "SMaLL-100")
    kept = hugging_face.read(there.folder)
    source, target = np.random.default_rng(5).integers(4, 60, size=(2, 1, 9), dtype=np.int32)
    target[0, 0] = 1
    rows = kept.source.rows
    ours = np.array(build(kept)({"source": source, "target": target}))[0]
    theirs = marian_files.marian_logits(
        there.options, there.weights, rows[source[0]], rows[target[0]], epsilon=1e-5, first=2
    )
    np.testing.assert_allclose(ours[:, 2:], theirs[:, rows[2:]], atol=1e-4)


def test_languages(there, model_dir):
    translator = load(model_dir, beam_size=1)
    languages = translator.card.languages
    if there.variant == "NLLB-200":
        assert languages.targets == languages.coded_sources == hugging_face_files.NLLB_LANGUAGES
        wanted = [">>deu_Latn<< >>eng_Latn<< a"]
        assert translator.with_codes(["a"], "en-de") == wanted
        assert translator.with_codes(["a"], "eng_Latn-deu_Latn") == wanted
        assert translator.with_codes(["a"], "zh-ar") == [">>arb_Arab<< >>zho_Hans<< a"]
    else:
        assert len(languages.targets) == 100
        assert {"de", "ast", "zu"} < set(languages.targets)
    if there.variant == "M2M-100":
        assert languages.sources == list(languages.targets)
        assert translator.with_codes(["a", " "], "en-de") == [">>de<< >>en<< a", " "]
        for to, received in (("de", "de"), ("en-xx", "xx"), ("xx-de", "xx-de"), ("en", "en")):
            with refused("to", received):
                translator.with_codes(["a"], to)
        for text in ("a", ">>de<< a", ">>de<< a >>en<<"):
            with refused("to", text):
                translator.with_codes([text])
        with refused("texts", ">>en<<"):
            translator.with_codes([">>de<< >>en<< a >>en<<"])
    # The second of the languages, after the pieces.
    ((code, *_),) = VocabularyPair.load(model_dir).source.encode([f">>{languages.targets[1]}<< a"])
    assert hugging_face.read(there.folder).source.rows[code] == there.count + 1


def test_one_source_language(tmp_path):
    there = written(tmp_path / "there", "NLLB-200")
    import_model(there.folder, tmp_path / "model", languages=["de"])
    translator = load(tmp_path / "model", beam_size=1)
    assert translator.with_codes(["a"], "en") == [">>eng_Latn<< >>deu_Latn<< a"]
    assert translator.with_codes(["a"], "de-en") == [">>eng_Latn<< >>deu_Latn<< a"]
    with refused("to", "ace-en"):
        translator.with_codes(["a"], "ace-en")
    import_model(there.folder, tmp_path / "one", languages=["de", "en"])
    translator = load(tmp_path / "one", beam_size=1)
    assert translator.with_codes(["a"]) == [">>eng_Latn<< >>deu_Latn<< a"]
    assert [str(each) for each in translator.card.languages.directions] == ["deu_Latn-eng_Latn"]
    for languages in (["de", "de"], ["de", "en", "zh"], ["fr"]):
        with refused("languages", ",".join(languages)):
            import_model(there.folder, tmp_path / "other", languages=languages)


# With codes on both sides; `test_scores` compares all models with the equations.
@pytest.mark.parametrize("there", ["NLLB-200"], indirect=True)
def test_translations_of_a_batch_in_several_directions(there_and_here):
    there, texts = there_and_here, coded_texts(there_and_here.variant)
    kept = hugging_face.read(there.folder)
    translator = load(there.model_dir, engine="tensorflow", beam_size=1, extra_length=3)
    answers = translator.translate(texts, aligned=True)
    for text, (answer,) in zip(texts, answers, strict=True):
        ids, log_prob = greedy(there, text, answer.tokens)
        assert answer.tokens == len(ids)
        np.testing.assert_allclose(answer.log_prob, log_prob, rtol=1e-4)
        np.testing.assert_allclose(sum(answer.pair.log_probs), log_prob, rtol=1e-4)
        ours = [int(np.flatnonzero(kept.target.rows == i)[-1]) for i in ids]
        spelled = ["</s>" if i == EOS_ID else kept.target.names[i] for i in ours]
        assert answer.pair.target_pieces == spelled


def test_scores(there_and_here):
    there, texts = there_and_here, coded_texts(there_and_here.variant)
    translator = load(there.model_dir, engine="tensorflow", beam_size=1)
    targets = ["die alte frau", "", "ein hund ."]
    rows = hugging_face.read(there.folder).target.rows
    encoded = translator.vocabularies.target.encode(targets)
    scores = translator.score(texts, targets)
    for text, ids, score in zip(texts, encoded, scores, strict=True):
        source, begin = ids_there(there, text)
        target = rows[[*ids, EOS_ID]].tolist()
        log_probs = reference_log_probs(there, source, [*begin, *target[:-1]])[len(begin) - 1 :]
        wanted = sum(row[token] for row, token in zip(log_probs, target, strict=True))
        assert score.tokens == len(target)
        np.testing.assert_allclose(score.log_prob, wanted, rtol=1e-4)


# The decoder reads a code, or does not.
@pytest.mark.parametrize("there", ["NLLB-200", "SMaLL-100"], indirect=True)
def test_ctranslate2_translates_and_scores_the_same(there_and_here, tmp_path):
    there, texts = there_and_here, coded_texts(there_and_here.variant)
    stored = open_model(ModelPath(there.model_dir)).restore()
    export_ctranslate2(stored.model, stored.vocabularies, tmp_path / "export", stored.card)
    options = {"beam_size": 3, "alpha": 0}
    here = load(there.model_dir, engine="tensorflow", **options)
    engines = [here, load(tmp_path / "export", **options)]
    ours, theirs = (engine.translate(texts, aligned=True) for engine in engines)
    for (one, *_), (other, *_) in zip(ours, theirs, strict=True):
        assert one.log_prob > other.log_prob - 1e-4  # its search ends earlier
    targets = [answers[0].text for answers in theirs]
    ours, theirs = (engine.score(texts, targets) for engine in engines)
    for one, other in zip(ours, theirs, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.log_prob, other.log_prob, rtol=1e-4)
    ours, theirs = (engine.align(texts, targets) for engine in engines)
    for one, other in zip(ours, theirs, strict=True):
        assert one.target_pieces == other.target_pieces
        assert one.alignment == other.alignment  # by the only layer


def test_programs_name_both_languages(call_program, tmp_path):
    there = written(tmp_path / "there", "NLLB-200")
    done = call_program("import_model", f"--path={there.folder}", f"--model_dir={tmp_path}/model")
    assert done.code == 0 and "forbids commercial use" in done.errors
    arguments = [f"--model_dir={tmp_path}/model", "--beam_size=1", "--one_sentence_per_line"]
    text = SOURCES[0].encode()
    named = call_program("translate", *arguments, "--from=en", "--to=de", stdin=text)
    codes = b">>deu_Latn<< >>eng_Latn<< "
    coded = call_program("translate", *arguments, stdin=codes + text)
    assert named.code == coded.code == 0 and named.output == coded.output != ""
    for flags, subject, received in (
        (["--to=de"], "--from", "none"),
        (["--from=fr", "--to=de"], "--from", "fr"),
        (["--from=en", "--to=fr"], "--to", "fr"),
        (["--from=en"], "--to", "none"),
        ([], "--to", SOURCES[0]),
    ):
        done = call_program("translate", *arguments, *flags, stdin=text)
        assert done.code == 1, flags
        check_line(done.errors, subject, received)


def test_weights_in_parts(tmp_path):
    there = written(tmp_path / "there", "M2M-100")
    whole = build(hugging_face.read(there.folder))
    tensors = load_file(there.folder / "model.safetensors")
    names = sorted(tensors)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = there.folder / f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, file)
    (there.folder / "model.safetensors").unlink()
    (there.folder / "model.safetensors.index.json").write_text("{}")
    parts = build(hugging_face.read(there.folder))
    for one, other in zip(whole.trainable_variables, parts.trainable_variables, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
    file.unlink()
    with refused(None, "1 of them", there.folder, about="2 parts of model.safetensors"):
        hugging_face.read(there.folder)


def changed(folder, path, file="config.json", **options):
    """A copy with other options; None removes one."""
    shutil.copytree(folder, path)
    content = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    content = {name: value for name, value in (content | options).items() if value is not None}
    (path / file).write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("size", [None, 10, 100_000])
def test_a_vocabulary_of_another_size(size, there, tmp_path):
    with refused("vocab_size", size, "config.json"):
        hugging_face.read(changed(there.folder, tmp_path / "there", vocab_size=size))


def test_other_languages_and_an_earlier_format(tmp_path):
    file = "tokenizer_config.json"
    m2m100 = written(tmp_path / "m2m100", "M2M-100").folder
    with refused("language_codes", "wmt21", file):
        hugging_face.read(changed(m2m100, tmp_path / "wmt", file, language_codes="wmt21"))
    nllb = written(tmp_path / "nllb", "NLLB-200").folder
    with refused("legacy_behaviour", "true", file):
        hugging_face.read(changed(nllb, tmp_path / "old", file, legacy_behaviour=True))
    with refused("added_tokens", "none", "tokenizer.json"):
        hugging_face.read(changed(nllb, tmp_path / "none", "tokenizer.json", added_tokens=None))
