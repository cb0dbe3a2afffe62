"""Flags of bin/train.py that are looked at before anything is done, and its smallest run."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from absl import flags

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.model_directory import read_description
from keras_transformer.core.training.run_config import DeviceConfig, LoopConfig
from keras_transformer.kit.exchange import saved_model
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.sources.files import FileSource
from tests.processes import ROOT
from tests.refusals import check_line
from tests.restoring import restore


def test_defaults_of_flags_are_those_of_the_library(load_program):
    load_program("train", "--data_dir=data", "--model_dir=model")
    for config in (TrainingConfig(), LoopConfig(), DeviceConfig()):
        defaults = dataclasses.asdict(config)
        found = {name: flags.FLAGS[name].default for name in defaults if name in flags.FLAGS}
        assert found == {name: defaults[name] for name in found}
        assert len(found) >= 4


@pytest.mark.parametrize(
    ("arguments", "subject", "received"),
    [
        (["--profile_steps=a,b"], "--profile_steps", "a,b"),
        (["--profile_steps=5,3"], "--profile_steps", "5,3"),
        (["--clip_norm=-1"], "--clip_norm", "-1.0"),
        (["--config=num_heads=7"], "--config d_k", "7 and "),
        (["--preset=huge"], "--preset", "'huge'"),
        (["--strategy=mirrored"], "--strategy", "no GPU"),
        (["stray"], "every argument", "'stray'"),
    ],
)
def test_impossible_flags(call_program, prepared, tmp_path, arguments, subject, received):
    model_dir = tmp_path / "model"
    done = call_program("train", f"--data_dir={prepared}", f"--model_dir={model_dir}", *arguments)
    assert done.code == 1
    check_line(done.errors, subject, received)
    assert not model_dir.exists()


def test_model_dir_of_another_model_is_left_alone(prepared, untrained, call_program):
    config = (untrained / "config.json").read_bytes()
    done = call_program("train", f"--data_dir={prepared}", f"--model_dir={untrained}")
    assert done.code == 1
    check_line(done.errors, "--model_dir", f"{untrained}, which has ")
    assert "num_layers: 1, not 6" in done.errors
    assert (untrained / "config.json").read_bytes() == config


@pytest.mark.slow  # another training
def test_a_run_with_a_vocabulary_for_each_side(call_program, prepared, tmp_path, monkeypatch):
    """Its validation loss, sample of translations and pictures of attention included."""
    train = tuple([str(prepared.parent / f"train.{language}")] for language in ("en", "de"))
    source = FileSource({"train": train, "validation": train})
    data_dir, model_dir = tmp_path / "data", tmp_path / "model"
    prepare(source, data_dir, PreparationConfig(vocab_size=285, shared_vocabulary=False))
    small = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2}
    done = call_program(
        "train",
        *(f"--data_dir={data_dir}", f"--model_dir={model_dir}", "--preset=tiny"),
        *(f"--config={name}={value}" for name, value in small.items()),
        *("--train_steps=1", "--tokens_per_batch=256", "--sample_sentences=2"),
    )
    assert done.code == 0, done.errors
    description = read_description(model_dir)
    assert description.source_vocabulary == "source_vocabulary.model"
    assert (description.model.source_vocab_size, description.model.vocab_size) == (285, 285)
    trained = restore(model_dir)
    assert trained.model.embedding is not trained.model.target_embedding
    assert trained.model.target_embedding is trained.model.logits_embedding
    assert '"bleu"' in (model_dir / "training_log.jsonl").read_text()

    # Another run begins with these weights, on data with one vocabulary for both sides.
    tuned, export_dir = tmp_path / "tuned", tmp_path / "export"
    monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})  # none of them is run
    done = call_program("export", f"--model_dir={model_dir}", f"--export_dir={export_dir}")
    assert done.code == 0, done.errors
    done = call_program(
        "train",
        *(f"--data_dir={prepared}", f"--model_dir={tuned}"),
        *("--train_steps=1", "--tokens_per_batch=256", "--sample_sentences=0"),
        *(f"--init_from={export_dir}", "--freeze=encoder", "--config=learning_rate=0.001"),
    )
    assert done.code == 0, done.errors
    assert "warm start: embedding/embeddings has" in done.errors
    for one, same in zip(
        trained.model.encoder.weights, restore(tuned).model.encoder.weights, strict=True
    ):
        np.testing.assert_array_equal(one, same)


@pytest.mark.slow  # a new interpreter, which compiles with XLA
def test_a_compiled_program_is_kept(prepared, tmp_path):
    """tests/support/test_xla_cache.py has what the next process does with it."""
    sizes = ("num_layers=1", "d_model=8", "d_ff=8", "num_heads=1")
    flags = [f"--data_dir={prepared}", f"--model_dir={tmp_path / 'model'}", "--preset=tiny"]
    flags += ["--tokens_per_batch=256", "--train_steps=2", "--xla=on", "--sample_sentences=0"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("TF_XLA_FLAGS")  # by which tests keep nothing
    settings = [f"--config={size}" for size in sizes]
    command = [sys.executable, ROOT / "bin" / "train.py", *flags, *settings]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("keras-transformer/xla-*/*.pb"))) == 1


@pytest.mark.slow  # compiles with XLA
def test_a_signal_ends_a_compilation(start_process, prepared, tmp_path):
    """XLA compiles four layers for much longer than the process takes to end."""
    errors, train = tmp_path / "errors", ROOT / "bin" / "train.py"
    arguments = [f"--data_dir={prepared}", f"--model_dir={tmp_path / 'model'}", "--preset=tiny"]
    process = start_process([train, *arguments, "--xla=on", "--train_steps=2"], errors=errors)
    while "XLA compiles the step" not in (errors.read_text() if errors.exists() else ""):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    result = json.loads(output.splitlines()[-1])
    assert (process.returncode, result["stopped"], result["step"]) == (0, "SIGTERM", 0)
    assert "XLA compiled the step" not in errors.read_text()
