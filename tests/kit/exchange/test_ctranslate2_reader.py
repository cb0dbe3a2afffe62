"""Models that CTranslate2's converters wrote, imported, beside CTranslate2 itself."""

import json
import shutil
import struct

import ctranslate2
import numpy as np
import pytest
import sentencepiece

from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.kit.exchange.model_bin import read_model_bin, write_model_bin
from keras_transformer.loading import load
from tests.kit.exchange import ctranslate2_files
from tests.kit.exchange.marian_files import SOURCES, TARGETS
from tests.refusals import refused


def opennmt(folder, **settings):
    ctranslate2_files.write_opennmt(folder, **settings)


def from_marian(folder, **settings):
    there = folder / "there"
    there.mkdir()
    ctranslate2_files.write_marian(folder, there, **settings)


# Together: all activations, types of weights and kinds of vocabularies.
MODELS = {
    "OpenNMT": (opennmt, {}),
    "OpenNMT, int8, two vocabularies": (
        opennmt,
        {"quantization": "int8", "shared": False, "activation": "silu"},
    ),
    "OpenNMT, int16": (opennmt, {"quantization": "int16", "activation": "gelu"}),
    "Marian": (from_marian, {"activation": "gelu"}),
    "Marian, float16": (from_marian, {"quantization": "float16"}),
}


def pieces_of(folder, side, texts):
    """Splits texts with the SentencePiece model of a side; Marian's callers add EOS."""
    models = sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    names = {"source": ("so", "sr", "se"), "target": ("ta", "tg", "se")}[side]
    (model,) = [model for model in models if model.name.startswith(names)]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return processor, processor.encode(texts, out_type=str)


@pytest.fixture(scope="module", params=MODELS)
def both(request, tmp_path_factory):
    """A model of CTranslate2, which computes in float32, and ours that was made of it."""
    write, settings = MODELS[request.param]
    folder = tmp_path_factory.mktemp("there")
    write(folder, **settings)
    model_dir = tmp_path_factory.mktemp("here") / "model"
    import_model(folder, model_dir, ["en", "de"] if write is opennmt else None)
    engine = ctranslate2.Translator(str(folder), intra_threads=1, compute_type="float32")
    return (
        folder,
        engine,
        load(model_dir, engine="tensorflow", beam_size=1, alpha=0.0, extra_length=3),
    )


def test_scores(both):
    folder, engine, translator = both
    _, sources = pieces_of(folder, "source", SOURCES)
    _, targets = pieces_of(folder, "target", TARGETS)
    theirs = [sum(score.log_probs) for score in engine.score_batch(sources, targets)]
    ours = [score.log_prob for score in translator.score(SOURCES, TARGETS)]
    assert np.ptp(theirs) > 1
    np.testing.assert_allclose(ours, theirs, atol=1e-3)  # of all tokens


def test_greedy_texts(both):
    folder, engine, translator = both
    _, sources = pieces_of(folder, "source", SOURCES)
    processor, _ = pieces_of(folder, "target", [])
    for source, (answer,) in zip(sources, translator.translate(SOURCES), strict=True):
        limits = {"max_decoding_length": answer.tokens, "min_decoding_length": 0}
        (found,) = engine.translate_batch([source], beam_size=1, **limits)
        assert answer.text == processor.decode(found.hypotheses[0]).replace("▁", " ").strip()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A model of OpenNMT, of which each of the following tests damages a copy."""
    folder = tmp_path_factory.mktemp("good")
    opennmt(folder)
    return folder


def with_arrays(changes, specification="TransformerSpec", revision=7):
    """Changes arrays in model.bin; None removes one."""

    def change(folder):
        arrays = {**read_model_bin(folder / "model.bin").arrays, **changes}
        arrays = {name: np.array(value) for name, value in arrays.items() if value is not None}
        write_model_bin(folder / "model.bin", specification, revision, arrays)

    return change


def with_bytes(change):
    """Changes the bytes of model.bin."""

    def write(folder):
        content = (folder / "model.bin").read_bytes()
        (folder / "model.bin").write_bytes(change(content))

    return write


def with_json(name, change):
    """Changes the content of a JSON file."""

    def write(folder):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(change(content)))

    return write


def renamed(name, *others):
    """Renames a file, removes it, or copies it under several names."""

    def write(folder):
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        for other in others:
            (folder / other).write_bytes(content)

    return write


# A file whose only array claims 4 GB.
LIE = struct.pack("<IH16sII", 6, 16, b"TransformerSpec\0", 7, 1)
LIE += struct.pack("<H2sB2IBI", 2, b"w\0", 2, 2**15, 2**15, 0, 2**32 - 1)
KEYS = "encoder/layer_0/self_attention/relative_position_keys"
BETA = "encoder/layer_0/ffn/layer_norm/beta"
OUTER = "decoder/layer_0/ffn/linear_1/weight"
TOKENS = "shared_vocabulary.json"


@pytest.mark.parametrize(
    ("change", "place", "argument", "received", "about"),
    [
        (with_bytes(lambda content: b""), "model.bin", None, "byte 0", "complete"),
        (with_bytes(lambda content: content[:-500]), "model.bin", None, "byte", "complete"),
        (with_bytes(lambda content: LIE), "model.bin", None, "byte", "complete"),
        (with_bytes(lambda content: b"\7" + content[1:]), "model.bin", None, "7", "version"),
        (with_arrays({}, "WhisperSpec"), "model.bin", None, "Whisper", "a translation model"),
        (with_arrays({}, revision=8), "model.bin", None, "8", "revision"),
        (with_arrays({OUTER: None}), "model.bin", OUTER, "none", "among"),
        (with_arrays({OUTER: np.ones((3, 4), "f")}), "model.bin", OUTER, "(4, 3)", "(20, 12)"),
        (with_arrays({KEYS: np.ones((3, 4), "f")}), "model.bin", None, KEYS, "relative positions"),
        (with_arrays({BETA: None}), "model.bin", None, "none", "RMSNorm"),
        (with_arrays({"a/weight": np.ones(2, "f")}), "model.bin", None, "a/weight", "only"),
        (with_arrays({"a/scale": np.float32(2)}), "model.bin", "a/scale", "2", "option"),
        (with_arrays({"encoder/activation": np.int8(3)}), "model.bin", "activation", "3", "same"),
        (
            with_json("config.json", lambda content: {**content, "add_source_bos": True}),
            *("config.json", "add_source_bos", "true", "code"),
        ),
        (
            with_json("config.json", lambda content: {**content, "decoder_start_token": "</s>"}),
            *("config.json", "decoder_start_token", "</s>", "Hugging Face"),
        ),
        (with_json(TOKENS, lambda tokens: tokens[:-1]), TOKENS, None, "52", "53 tokens"),
        (with_json(TOKENS, lambda tokens: ["a"] * len(tokens)), TOKENS, None, "some", "twice"),
        (renamed(TOKENS), "", None, "none", "shared_vocabulary"),
        (renamed("sentencepiece.model"), "", None, "none", "SentencePiece"),
        (renamed("sentencepiece.model", "a.model", "b.model"), "", None, "a.model, b", "sides"),
        (renamed(TOKENS, "source_vocabulary.json"), "", None, "none", "target_vocabulary"),
    ],
)
def test_what_cannot_be_imported(change, place, argument, received, about, good, tmp_path):
    folder = shutil.copytree(good, tmp_path / "there")
    change(folder)
    with refused(argument, received, place or folder, about):
        import_model(folder, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_gated_network_with_biases_is_refused(good, tmp_path):
    arrays = read_model_bin(good / "model.bin").arrays
    gates = {
        f"{layer}/ffn/linear_0_noact/weight": arrays[f"{layer}/ffn/linear_0/weight"]
        for layer in ("encoder/layer_0", "encoder/layer_1", "decoder/layer_0")
    }
    swish = {f"{stack}/activation": np.int8(2) for stack in ("encoder", "decoder")}
    folder = shutil.copytree(good, tmp_path / "there")
    with_arrays(gates | swish)(folder)
    with refused(None, "decoder/layer_0/ffn/linear_0/bias", "model.bin"):
        import_model(folder, tmp_path / "model")
