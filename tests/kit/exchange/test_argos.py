"""Packages for Argos Translate: their contents, and that they translate as the model does.

`translate_as_argos` does what Argos Translate 1.12 does with a package, once it has sentences.
"""

import json
import shutil
import zipfile

import ctranslate2
import pytest
import sentencepiece

from keras_transformer.core.config import SUFFIXES
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.language_codes import Direction, options_of
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.documents.text_translator import TextTranslator
from keras_transformer.kit.exchange.argos import export_argos, write_zip
from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.kit.exchange.sentencepiece_pieces import sentencepiece_model
from pipelines.prepare.vocabulary import learn_subwords
from tests.given_answers import card_of
from tests.kit.exchange import ctranslate2_files
from tests.kit.exchange.marian_files import SOURCES
from tests.refusals import refused
from tests.small_models import engine_of, small_model

ENGLISH = ["the dog sees a cat. the cat sleeps.", "an (old) dog runs to the big house!"] * 20
GERMAN = ["der Hund sieht eine Katze", "grüße, 12 süße Vögel – „schön“ 😀"] * 20
DIRECTIONS = [Direction("en", "de"), Direction("en", "cs"), Direction("de", "cs")]
GREEDY = DecodingConfig(beam_size=1, extra_length=3)
LANGUAGES = ["en", "de"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    vocabulary = learn_subwords(ENGLISH + GERMAN, "bpe", 330, folder, 1, languages=["de", "cs"])
    return VocabularyPair(vocabulary, vocabulary)


@pytest.fixture(scope="module")
def separate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("separate")
    sides = {"source_vocabulary": (ENGLISH, 300), "target_vocabulary": (GERMAN, 310)}
    return VocabularyPair(
        *[learn_subwords(text, "bpe", size, folder, 1, name=n) for n, (text, size) in sides.items()]
    )


@pytest.fixture(scope="module")
def model():
    return small_model(vocab_size=330, scale=3.0)


def install(file, folder):
    """Installs a package as Argos Translate does; returns its folder."""
    with zipfile.ZipFile(file) as package:
        package.extractall(folder)
        (top,) = {name.partition("/")[0] for name in package.namelist()}
    return folder / top


def translate_as_argos(package, sentences, compute_type="default", **options):
    translator = ctranslate2.Translator(str(package / "model"), compute_type=compute_type)
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(package / "sentencepiece.model")
    )
    tokens = [processor.encode(sentence, out_type=str) for sentence in sentences]
    results = translator.translate_batch(tokens, replace_unknowns=True, **options)
    found = [processor.decode_pieces(result.hypotheses[0]) for result in results]
    return [text.replace("▁", " ").replace("_", " ") for text in found]


def as_argos_writes(text):
    return text.replace("_", " ")


def export(folder, model, vocabularies, directions=None, **origin):
    card = card_of(model.config, GREEDY, **origin, date="2026-11-26")
    return export_argos(model, vocabularies, folder, card, directions=directions)["argos"]


def test_content(model, shared, tmp_path):
    (file,) = export(tmp_path / "export", model, shared, languages=LANGUAGES)
    assert file == str(tmp_path / "export" / "translate-en_de.argosmodel")
    package = install(file, tmp_path)
    assert package.name == "translate-en_de"
    names = {path.name for path in package.iterdir()}
    assert names == {"metadata.json", "model", "sentencepiece.model"}
    metadata = json.loads((package / "metadata.json").read_text())
    assert metadata == {
        "type": "translate",
        "package_version": "2026.11.26",
        "argos_version": "1.9",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
    }
    vocabulary = shared.target.file.read_bytes()
    assert (package / "sentencepiece.model").read_bytes() == vocabulary


def test_translations_with_one_vocabulary(model, shared, tmp_path):
    (file,) = export(tmp_path / "export", model, shared, languages=LANGUAGES)
    assert_same_translations(install(file, tmp_path), model, shared, ENGLISH[:2])


def test_translations_with_a_vocabulary_for_each_side(separate, tmp_path):
    sizes = {"source_vocab_size": 300, "tie_embeddings": False}
    model = small_model(vocab_size=310, scale=3.0, **sizes)
    (file,) = export(tmp_path / "export", model, separate, languages=LANGUAGES)
    package = install(file, tmp_path)
    assert_same_translations(package, model, separate, ENGLISH[:2])
    # The package joins the target's pieces as the target vocabulary does.
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(package / "sentencepiece.model")
    )
    for text, ids in zip(GERMAN[:2], separate.target.encode(GERMAN[:2]), strict=True):
        pieces = [separate.target.pieces[id_] for id_ in ids]
        assert processor.decode_pieces(pieces).replace("▁", " ").lstrip(" ") == text


@pytest.mark.slow  # two exports and their translations
def test_a_package_for_each_direction(model, shared, tmp_path):
    files = export(tmp_path / "export", model, shared, task_options=options_of(DIRECTIONS))
    names = [file.rpartition("/")[2] for file in files]
    assert names == [f"translate-{pair}.argosmodel" for pair in ("en_de", "en_cs", "de_cs")]
    card = card_of(model.config, GREEDY)
    translator = TextTranslator(engine_of(model, shared, GREEDY), shared, card)
    (target,) = translator.vocabularies.target.encode(["der Hund"])
    pieces = [shared.target.pieces[id_] for id_ in target]
    scores = {}
    for file, direction in zip(files, DIRECTIONS, strict=True):
        package = install(file, tmp_path)
        coded = [f">>{direction.target}<< {text}" for text in ENGLISH[:2]]
        assert_same_translations(package, model, shared, ENGLISH[:2], coded)
        source = sentencepiece.SentencePieceProcessor(
            model_file=str(package / "sentencepiece.model")
        ).encode(ENGLISH[0], out_type=str)
        (found,) = ctranslate2.Translator(str(package / "model")).score_batch([source], [pieces])
        (wanted,) = translator.score(coded[:1], ["der Hund"])
        assert sum(found.log_probs) == pytest.approx(wanted.log_prob, abs=1e-3)
        scores[direction.target] = wanted.log_prob
    assert abs(scores["de"] - scores["cs"]) > 0.1, "the target language counts"
    (one,) = export(tmp_path / "one", model, shared, ["de-cs"], task_options=options_of(DIRECTIONS))
    assert one.endswith("translate-de_cs.argosmodel")


def assert_same_translations(package, model, vocabularies, sentences, coded=None):
    """Checks that Argos' translations equal those of our search; returns them."""
    translations = translate_as_argos(package, sentences, beam_size=1, max_decoding_length=9)
    engine = engine_of(model, vocabularies, DecodingConfig(beam_size=1))
    card = card_of(model.config, DecodingConfig(beam_size=1))
    translator = TextTranslator(engine, vocabularies, card)
    wanted = []
    for pieces in translator.translate(coded or sentences, aligned=True, scores=False):
        ids = [vocabularies.target.pieces.index(p) for p in pieces[0].pair.target_pieces[:9]]
        wanted.append(vocabularies.target.decode([ids])[0])
    assert [text.strip() for text in translations] == [
        as_argos_writes(text).strip() for text in wanted
    ]
    assert all(translations)
    return tuple(translations)


def test_an_imported_model_has_its_sentencepiece_model(shared, tmp_path):
    content = shared.target.file.read_bytes()
    file = tmp_path / f"vocabulary{SUFFIXES['pieces']}"
    file.write_bytes(json.dumps(shared.target.pieces).encode() + b"\n" + content)
    assert sentencepiece_model(Subwords(file)) == content


@pytest.mark.parametrize(
    ("directions", "origin", "argument", "received"),
    [
        (None, {}, "directions", "none"),
        (["en"], {}, "directions", "'en'"),
        (["en-de", "en-cs"], {"languages": LANGUAGES}, "directions", "'en-cs'"),
        (["en-de", "en-cs"], {}, "directions", "en-de,en-cs"),
        (["fr-it"], {"languages": LANGUAGES}, "directions", "'fr-it'"),
        (["en-fr"], {"task_options": options_of(DIRECTIONS)}, "directions", "'en-fr'"),
        (["cs-de"], {"task_options": options_of(DIRECTIONS)}, "directions", "'cs-de'"),
        # A model with codes that does not know its source languages, as some imported ones.
        (["en-fr"], {"task_options": {"target_languages": ["de"]}}, "directions", "'en-fr'"),
        (["en-de"] * 2, {"task_options": options_of(DIRECTIONS)}, "directions", "en-de,en-de"),
    ],
)
def test_directions_that_cannot_be(model, shared, tmp_path, directions, origin, argument, received):
    with refused(argument, received):
        export(tmp_path / "export", model, shared, directions, **origin)


def test_wordpiece_is_refused(model, tmp_path):
    vocabulary = learn_subwords(ENGLISH, "wordpiece", 60, tmp_path, 1)
    with refused("vocabulary", "wordpiece"):
        pair = VocabularyPair(vocabulary, vocabulary)
        export(tmp_path / "export", model, pair, languages=LANGUAGES)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installed package with a model of OpenNMT, as Argos has them, in int8."""
    package = tmp_path_factory.mktemp("argos") / "translate-en_de-1_0"
    ctranslate2_files.write_package(package, "en", "de")
    return package


@pytest.mark.parametrize("packed", [True, False])
def test_a_package_of_others_is_imported_and_written_again(
    packed, installed, call_program, tmp_path
):
    path = installed
    if packed:
        path = tmp_path / "translate-en_de.argosmodel"
        write_zip(installed, path)
    model_dir = tmp_path / "model"
    done = call_program("import_model", f"--path={path}", f"--model_dir={model_dir}")
    assert done.code == 0, done.errors
    flags = [f"--model_dir={model_dir}", f"--export_dir={tmp_path / 'export'}", "--format=argos"]
    done = call_program("export", *flags)
    assert done.code == 0, done.errors
    (file,) = done.result["argos"]
    limits = {"beam_size": 1, "max_decoding_length": 12}
    texts = [*SOURCES, *SOURCES[::-1]]
    theirs = translate_as_argos(installed, texts, **limits, compute_type="float32")
    assert translate_as_argos(install(file, tmp_path), texts, **limits) == theirs
    assert len(set(theirs)) > 3


def with_zip(change):
    """Makes a package of a changed folder."""

    def make(folder, file):
        change(folder)
        write_zip(folder, file)

    return make


def copied(name, other):
    return lambda folder: shutil.copytree(folder / name, folder / other)


@pytest.mark.parametrize(
    ("make", "argument", "received", "about"),
    [
        (lambda folder, file: file.write_bytes(b"PK"), None, "zip", "complete"),
        (with_zip(lambda folder: (folder / "metadata.json").unlink()), None, "0", "metadata.json"),
        (with_zip(copied("model", "model_2")), None, "model, model_2", "one model"),
        (with_zip(lambda folder: shutil.rmtree(folder / "model")), None, "none", "one model"),
        (
            with_zip(lambda folder: (folder / "sentencepiece.model").rename(folder / "bpe.model")),
            *(None, "none", "bpe.model"),
        ),
        (
            with_zip(lambda folder: (folder / "metadata.json").write_text("{}")),
            *("from_code", "none", "given"),
        ),
    ],
)
def test_packages_that_cannot_be_imported(make, argument, received, about, installed, tmp_path):
    folder = shutil.copytree(installed, tmp_path / "package")
    file = tmp_path / "translate-en_de.argosmodel"
    make(folder, file)
    with refused(argument, received, about=about):
        import_model(file, tmp_path / "model")
    assert {path.name for path in tmp_path.iterdir()} == {"package", file.name}


def test_a_damaged_model_in_a_package_is_named_by_the_package(installed, tmp_path):
    folder = shutil.copytree(installed, tmp_path / "package")
    (folder / "model" / "model.bin").write_bytes(b"")
    file = tmp_path / "translate-en_de.argosmodel"
    write_zip(folder, file)
    with refused(None, "byte 0", f"{file.name}/model/model.bin"):
        import_model(file, tmp_path / "model")
