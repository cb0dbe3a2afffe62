"""Which engine computes a model: what is asked, and what CTranslate2 can do."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer import loading
from keras_transformer.core.search.config import SamplingConfig
from keras_transformer.use.store import converted
from tests.program_fixtures import BIN, PAIRS, make_model_dir
from tests.refusals import check_line, refused

SOURCES = [source for source, _ in PAIRS]
SAMPLING = SamplingConfig()


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        ({}, "ctranslate2"),
        ({"engine": "tensorflow"}, "tensorflow"),
        ({"device": "cpu", "xla": "off"}, "ctranslate2"),
        ({"device": "cpu", "xla": "on"}, "tensorflow"),
        ({"beam_size": 1, "min_length": 3, "no_repeat_ngram_size": 2}, "ctranslate2"),
        ({"forbidden_phrases": ["katze"], "alpha": 1.0, "n_best": 1}, "ctranslate2"),
        ({"n_best": 2}, "tensorflow"),
        ({"mbr": "chrf"}, "tensorflow"),
        ({"sampling": SAMPLING}, "tensorflow"),
        ({"sampling": SAMPLING, "engine": "ctranslate2"}, "ctranslate2"),
        ({"max_source_length": 2048}, "tensorflow"),  # more positions than a copy has
    ],
)
def test_options_choose_the_engine(untrained, options, engine):
    assert kt.load(untrained, **options).engine.name == engine


def test_kinds_of_models_choose_the_engine(
    prepared, untrained, exported, for_ctranslate2, tmp_path
):
    windowed = make_model_dir(prepared, tmp_path / "windowed", {1: (1, 1)}, attention_window=2)
    model = shutil.copytree(untrained, tmp_path / "model")
    kt.load(untrained).model.save(model / "model.keras")
    engines = {
        windowed: "tensorflow",
        model / "model.keras": "ctranslate2",
        model / "checkpoints" / "step-00000010": "ctranslate2",
        exported: "tensorflow",
        for_ctranslate2: "ctranslate2",
    }
    found = {path: kt.load(path).engine.name for path in engines}
    assert found == engines
    assert kt.load([untrained, untrained]).engine.name == "tensorflow"


def test_without_ctranslate2_or_its_export_tensorflow_translates(untrained, monkeypatch):
    for module in ("ctranslate2", "keras_transformer.kit.exchange.formats"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            assert kt.load(untrained).engine.name == "tensorflow"
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with refused("ctranslate2", "none installed"):
        kt.load(untrained, engine="ctranslate2")


def test_a_gpu_is_tensorflows(untrained, monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "NVIDIA_DRIVER", tmp_path)  # there is one
    assert kt.load(untrained).engine.name == "tensorflow"
    assert kt.load(untrained, device="cpu").engine.name == "ctranslate2"


def test_engines_that_cannot(prepared, untrained, exported, for_ctranslate2, tmp_path):
    windowed = make_model_dir(prepared, tmp_path / "windowed", {1: (1, 1)}, attention_window=2)
    for path, about in ((exported, "a SavedModel"), ([untrained] * 2, "an ensemble")):
        with refused("engine", "ctranslate2", about=about):
            kt.load(path, engine="ctranslate2")
    with refused("model", "attention_window=2", about="ctranslate2"):
        kt.load(windowed, engine="ctranslate2")
    with refused("engine", "tensorflow", about="CTranslate2"):
        kt.load(for_ctranslate2, engine="tensorflow")
    with refused("engine", '"marian"', about="ctranslate2"):
        kt.load(untrained, engine="marian")


def test_both_engines_have_the_same_card_and_answers(untrained):
    options = {"checkpoint": "average:2", "beam_size": 2, "extra_length": 8}
    fast, ours = (kt.load(untrained, engine=name, **options) for name in ("auto", "tensorflow"))
    assert fast.card.description == ours.card.description
    assert (
        fast.card.which_weights
        == ours.card.which_weights
        == {"checkpoint": "average:2", "step": 20, "averaged": 2, "validation_loss": 10.0}
    )
    assert fast.config == ours.config
    scores = [one.score(*zip(*PAIRS, strict=True)) for one in (fast, ours)]
    np.testing.assert_allclose(*[[each.log_prob for each in row] for row in scores], atol=1e-3)
    for one, other in zip(fast.model.weights, ours.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_tensorflow_computes_what_ctranslate2_does_not(untrained, monkeypatch):
    loads = []
    fast, ours = (kt.load(untrained, beam_size=2, engine=name) for name in ("auto", "tensorflow"))
    load = fast.engine._load
    monkeypatch.setattr(fast.engine, "_load", lambda: loads.append(1) or load())
    fast.translate(SOURCES)
    assert loads == []
    options = {"required_phrases": [["hund"]] * 3}
    rows = [one.translate(SOURCES, **options) for one in (fast, ours)]
    assert [[best.text for best in row] for row in rows[0]] == [
        [best.text for best in row] for row in rows[1]
    ]
    maps = [one.attention("the cat", "die katze").memory for one in (fast, ours)]
    np.testing.assert_array_equal(*maps)
    rows = [one.translate(["the cat"], terminology={"cat": "hund"}) for one in (fast, ours)]
    assert rows[0][0][0].without_terms == rows[1][0][0].without_terms
    assert loads == [1]
    with refused("required_phrases", "CTranslate2"):
        kt.load(untrained, engine="ctranslate2").translate(["a"], required_phrases=[["hund"]])


@pytest.fixture
def model_dir(untrained, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(untrained, tmp_path / "model")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache."""
    monkeypatch.setattr(converted, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def test_a_model_is_converted_once(model_dir, cache, monkeypatch):
    first = kt.load(model_dir).translate(SOURCES)
    (copy,) = cache.iterdir()
    written = (copy / "model.bin").stat().st_mtime_ns
    assert kt.load(model_dir).translate(SOURCES) == first
    (model_dir / "decoding.json").write_text('{"alpha": 1.4, "beam_size": 3}')
    assert kt.load(model_dir).config.alpha == 1.4  # chosen since
    assert (copy / "model.bin").stat().st_mtime_ns == written
    kt.load(model_dir, "average:2")
    (model_dir / "checkpoints" / "step-00000020.json").unlink()  # step 10 is the latest now
    kt.load(model_dir)
    assert len(list(cache.iterdir())) == 3


def test_a_damaged_copy_is_replaced(model_dir, cache):
    first = kt.load(model_dir).translate(SOURCES)
    (copy,) = cache.iterdir()
    (copy / "model.bin").write_bytes(b"short")
    assert kt.load(model_dir, engine="ctranslate2").translate(SOURCES) == first


def test_copies_used_least_recently_are_removed(model_dir, cache, monkeypatch):
    kt.load(model_dir)
    (first,) = cache.iterdir()
    kt.load(model_dir, "average:2")
    os.utime(first / converted.CARD, (1, 1))
    monkeypatch.setattr(converted, "MOST_BYTES", 1)
    kt.load(model_dir, "average:2")
    (second,) = cache.iterdir()
    assert second != first


def test_a_cache_that_cannot_be_written(model_dir, cache, monkeypatch):
    cache.write_text("a file")
    assert kt.load(model_dir).engine.name == "tensorflow"
    with pytest.raises(OSError, match="cache"):
        kt.load(model_dir, engine="ctranslate2")


def test_another_process_wrote_the_same_copy_first(model_dir, cache, monkeypatch):
    def write(stored, *arguments):
        trained = restore(stored)
        monkeypatch.setattr(type(stored), "restore", restore)
        kt.load(model_dir)
        return trained

    stored = loading.open_model(loading.ModelPath(model_dir))
    restore = type(stored).restore
    monkeypatch.setattr(type(stored), "restore", write)
    assert kt.load(model_dir).engine.name == "ctranslate2"
    assert len(list(cache.iterdir())) == 1


SECOND_START = """
import sys
import keras_transformer as kt
translator = kt.load(sys.argv[1], n_best=1)
print(translator.translate(["the cat sat"])[0][0].text, translator.engine.name)
assert "tensorflow" not in sys.modules and "keras" not in sys.modules
"""


def test_the_second_start_does_not_import_tensorflow(untrained, monkeypatch, tmp_path):
    cache = tmp_path / "keras-transformer"
    monkeypatch.setattr(converted, "cache_folder", lambda: cache)
    wanted = kt.load(untrained, n_best=1).translate(["the cat sat"])[0][0].text
    environment = {**os.environ, "PYTHONPATH": str(BIN.parent), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", SECOND_START, str(untrained)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{wanted} ctranslate2\n"


@pytest.mark.parametrize(
    ("flags", "engine"),
    [
        ([], "ctranslate2"),
        (["--engine=tensorflow"], "tensorflow"),
        (["--terminology={terms}"], "tensorflow"),
        (["--sample"], "tensorflow"),
    ],
)
def test_translate_reports_its_engine(call_program, untrained, tmp_path, flags, engine):
    (tmp_path / "terms").write_text("cat\tkatze\n")
    flags = [flag.format(terms=tmp_path / "terms") for flag in flags]
    done = call_program("translate", f"--model_dir={untrained}", *flags, stdin=b"the cat\n")
    assert json.loads(done.errors.splitlines()[-1])["engine"] == engine, done.errors


def test_programs_refuse_an_engine_that_cannot(call_program, untrained, exported, tmp_path):
    flag = "--engine=ctranslate2"
    done = call_program("translate", f"--saved_model={exported}", flag, stdin=b"a\n")
    check_line(done.errors, "--engine", "ctranslate2", "a SavedModel")
    done = call_program("evaluate", flag, "--choose_alpha", "--model_dir=a", "--data_dir=b")
    check_line(done.errors, "--engine", "ctranslate2", "--choose_alpha")
    learning = [f"--corrections={tmp_path}/c.tmx", f"--adapter_dir={tmp_path}/a", "--data_dir=d"]
    done = call_program("serve", f"--model_dir={untrained}", flag, *learning)
    check_line(done.errors, "--engine", "ctranslate2", "--adapter_dir")
