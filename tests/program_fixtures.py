"""A small data directory and a model directory that goes with it, and a way to run programs."""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

BIN = Path(__file__).resolve().parents[1] / "bin"
PAIRS = [
    ("the cat sat on the mat", "die katze sass auf der matte"),
    ("a dog ran to the house", "ein hund lief zum haus"),
    ("big red cats and small dogs", "grosse rote katzen und kleine hunde"),
]


@pytest.fixture(scope="session")
def run_program():
    """Runs a program of bin/: gives its exit code, output, errors, and result (its JSON line)."""

    def run(name, *arguments, stdin=b"", cwd=None):
        command = [sys.executable, str(BIN / f"{name}.py"), *arguments]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        process = subprocess.run(
            command, input=stdin, capture_output=True, cwd=cwd, env=environment, check=False
        )
        output, errors = process.stdout.decode("utf-8"), process.stderr.decode("utf-8")
        lines = output.splitlines()
        result = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None
        assert "Traceback" not in errors, errors
        return types.SimpleNamespace(
            code=process.returncode, output=output, errors=errors, result=result
        )

    return run


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A data directory of a few sentences; its test split has a blank and an over-long pair."""
    from pipelines.preparation import PreparationConfig, prepare
    from pipelines.sources import FileSource

    folder = tmp_path_factory.mktemp("prepared")
    texts = {"train": PAIRS * 5, "test": [*PAIRS, ("", "nichts"), ("cat " * 40, "katze " * 40)]}
    files = {}
    for split, pairs in texts.items():
        paths = [folder / f"{split}.{side}" for side in ("en", "de")]
        for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        files[split] = ([str(paths[0])], [str(paths[1])])
    config = PreparationConfig(vocab_size=310, max_length=32, seed=1)
    prepare(FileSource(files), folder / "data", config)
    return folder / "data"


@pytest.fixture(scope="session")
def untrained(prepared, tmp_path_factory):
    """A model directory for that data, with two checkpoints of random weights."""
    import keras

    from keras_transformer.config import TrainingConfig, TransformerConfig
    from keras_transformer.model.transformer import build_transformer
    from keras_transformer.training.checkpoints import CheckpointStore, named_variables
    from keras_transformer.training.model_directory import ModelDescription, create_or_check
    from pipelines.records import read_metadata

    metadata = read_metadata(prepared)
    config = TransformerConfig(
        metadata.vocab_size, num_layers=1, d_model=16, d_ff=16, num_heads=2, dropout=0.1
    )
    description = ModelDescription(
        "tiny",
        config,
        TrainingConfig(),
        vocabulary=metadata.vocabulary,
        vocabulary_fingerprint=metadata.fingerprint,
        max_length=metadata.max_length,
    )
    model_dir = tmp_path_factory.mktemp("trained") / "model"
    create_or_check(model_dir, description, prepared / metadata.vocabulary)
    store = CheckpointStore(model_dir)
    for step in (10, 20):
        keras.utils.set_random_seed(step)
        model = build_transformer(config)
        store.save(
            {"model": named_variables(model.variables)}, step=step, validation_loss=30 - step
        )
    return model_dir
