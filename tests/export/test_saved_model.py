import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.inference import DecodingConfig
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import InputError
from keras_transformer.export.saved_model import (
    ExportedTranslator,
    check_export_dir,
    export_saved_model,
)
from keras_transformer.model.transformer import build_transformer
from pipelines.vocabulary import learn_subwords

TEXT = ["the cat sat on the mat", "a dog ran to the house", "big red cats and small dogs"] * 5
LINES = ["the cat", "", "a dog ran to the house", "  ", "😀 unseen Ω", "x" * 300, "a\tb\x07"]
DECODING = DecodingConfig(3, extra_length=4, max_source_length=12)
FACTS = {"checkpoint": "step-00000007", "step": 7}
# Loads and runs an export with nothing of this project importable; prints what it gives.
FOREIGN_PROCESS = """
import json, sys
import tensorflow as tf
import tensorflow_text
assert not [name for name in sys.modules if name.startswith(("keras_transformer", "pipelines"))]
loaded = tf.saved_model.load(sys.argv[1])
run = loaded.signatures["serving_default"]
answers = {}
for name, texts in json.loads(sys.argv[2]).items():
    outputs = run(text=tf.constant([bytes.fromhex(text) for text in texts], tf.string))
    answers[name] = {
        "translation": [text.decode("utf-8") for text in outputs["translation"].numpy()],
        "score": outputs["score"].numpy().tolist(),
        "shapes": [outputs[key].shape.as_list() for key in ("translation", "score")],
    }
print(json.dumps(answers))
"""


@pytest.fixture(scope="module", params=["bpe", "wordpiece"])
def parts(request, tmp_path_factory):
    """A model, its vocabulary, the folder it was exported to, and what exporting returned."""
    folder = tmp_path_factory.mktemp(request.param)
    size = {"bpe": 310, "wordpiece": 40}[request.param]
    tokenizer = learn_subwords(TEXT, request.param, size, folder, seed=1)
    keras.utils.set_random_seed(5)
    config = TransformerConfig(tokenizer.vocab_size, num_layers=1, d_model=16, d_ff=8, num_heads=2)
    model = build_transformer(config)
    for variable in model.trainable_variables:
        variable.assign(variable * 2.0)
    export_dir = folder / "export" / "1"
    result = export_saved_model(model, tokenizer, DECODING, export_dir, FACTS)
    return model, tokenizer, export_dir, result


def test_foreign_process_gives_what_translate_gives(parts, tmp_path):
    model, tokenizer, export_dir, _ = parts
    invalid = [b"cat \xff dog", b"\xc3"]
    batches = {
        "lines": [line.encode() for line in LINES],
        "none": [],
        "invalid": invalid,
        "replaced": [text.decode("utf-8", errors="replace").encode() for text in invalid],
    }
    argument = json.dumps({name: [text.hex() for text in texts] for name, texts in batches.items()})
    command = [sys.executable, "-c", FOREIGN_PROCESS, str(export_dir), argument]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    process = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    answers = json.loads(process.stdout.splitlines()[-1])
    wanted = Translator(model, tokenizer, DECODING).translate(LINES)
    assert answers["lines"]["translation"] == [best[0].text for best in wanted]
    scores = [best[0].score for best in wanted]
    np.testing.assert_allclose(answers["lines"]["score"], scores, rtol=1e-4)
    assert answers["none"] == {"translation": [], "score": [], "shapes": [[0], [0]]}
    assert answers["invalid"] == answers["replaced"]


def test_n_best_and_truncation(parts):
    model, tokenizer, export_dir, _ = parts
    exported = ExportedTranslator(export_dir)
    translator = Translator(model, tokenizer, DECODING)
    wanted = translator.translate(LINES)
    for got, best in zip(exported.translate(LINES), wanted, strict=True):
        assert [text for text, _ in got] == [text for text, _ in best]
        np.testing.assert_allclose([s for _, s in got], [s for _, s in best], rtol=1e-4)
    long_lines = sum(len(ids) > 11 for ids in tokenizer.encode(LINES))
    assert exported.truncated == translator.truncated == long_lines > 0
    assert exported.translate([]) == []
    outputs = tf.saved_model.load(str(export_dir)).signatures["n_best"](text=tf.constant(["", "a"]))
    assert outputs["translation"].numpy()[0].tolist() == [b"", b"", b""]
    assert outputs["score"].numpy()[0].tolist() == [0, -np.inf, -np.inf]


def test_weights_are_stored_once(parts):
    model, _, export_dir, result = parts
    reader = tf.train.load_checkpoint(str(export_dir / "variables" / "variables"))
    names = [name for name in reader.get_variable_to_shape_map() if "weights" in name]
    sizes = {name: np.prod(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    parameters = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    assert sum(sizes[name] for name in names) == parameters
    others = [name for name in sizes if name not in names and sizes[name] > 1]
    assert others == []
    total = sum(file.stat().st_size for file in export_dir.rglob("*") if file.is_file())
    assert result == {"saved_model": str(export_dir), "bytes": total, **FACTS}


def test_model_card(parts):
    model, tokenizer, export_dir, _ = parts
    card = json.loads((export_dir / "assets.extra" / "model_card.json").read_text())
    assert card["checkpoint"] == "step-00000007"
    assert (card["beam_size"], card["alpha"], card["max_source_length"]) == (3, 0.6, 12)
    assert card["vocabulary_fingerprint"] == tokenizer.fingerprint
    assert card["parameters"] == model.count_params()


def test_nothing_is_lost(parts, tmp_path):
    model, tokenizer, export_dir, _ = parts
    with pytest.raises(InputError, match="--export_dir must not exist yet, or be empty, without"):
        export_saved_model(model, tokenizer, DECODING, export_dir, FACTS)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="--overwrite replaces nothing but an earlier export"):
        export_saved_model(model, tokenizer, DECODING, tmp_path, FACTS, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    check_export_dir(tmp_path / "empty", overwrite=False)


def test_overwrite_replaces_an_earlier_export(parts):
    model, tokenizer, export_dir, _ = parts
    facts = {"checkpoint": "step-00000008"}
    export_saved_model(model, tokenizer, DECODING, export_dir, facts, overwrite=True)
    assert ExportedTranslator(export_dir).card["checkpoint"] == "step-00000008"
    assert [path.name for path in export_dir.parent.iterdir()] == [export_dir.name]


def test_foreign_directory_is_no_export(tmp_path):
    with pytest.raises(InputError, match=r"--saved_model must be a directory that bin/export.py"):
        ExportedTranslator(tmp_path)
