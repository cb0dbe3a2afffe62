"""Fixtures that several test files share and that take seconds to make: made once per test run.

Workers share the folders from `made_once`, so tests must not write to them. A test that writes
copies the folder first.
"""

import functools
import os
import shutil

import pytest
from filelock import FileLock

from tests.program_fixtures import PAIRS, make_model_dir


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Returns a function: made_once(name, make) calls make(folder) once for all workers.

    It returns the folder. In one run, a name must always stand for the same content.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # shared by all workers

    def made(name, make):
        folder, done = root / f"world-{name}", root / f"world-{name}.done"
        with FileLock(root / f"world-{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # left by a worker that failed
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def prepared(made_once):
    """A data directory with a few sentences; its test split has a blank and an overlong pair."""

    def make(folder):
        from pipelines.prepare.preparation import PreparationConfig, prepare
        from pipelines.sources.files import FileSource

        texts = {"train": PAIRS * 5, "test": [*PAIRS, ("", "nichts"), ("cat " * 40, "katze " * 40)]}
        files = {}
        for split, pairs in texts.items():
            paths = [folder / f"{split}.{side}" for side in ("en", "de")]
            for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            files[split] = ([str(paths[0])], [str(paths[1])])
        config = PreparationConfig(vocab_size=310, max_length=32, seed=1)
        prepare(FileSource(files), folder / "data", config)

    return made_once("prepared", make) / "data"


@pytest.fixture(scope="session")
def untrained(prepared, made_once, tmp_path_factory):
    """A model directory for that data, with two checkpoints of random weights.

    Each worker has its own, because programs write their results to it.
    """

    def make(folder):
        make_model_dir(prepared, folder / "model", {10: (10, 20), 20: (20, 10)})

    folder = tmp_path_factory.mktemp("trained")
    return shutil.copytree(made_once("untrained", make) / "model", folder / "model")


@pytest.fixture(scope="session")
def exported(untrained, made_once):
    """A SavedModel with all signatures: the average of `untrained`'s checkpoints, with 2 beams."""

    def make(folder):
        from keras_transformer.kit.exchange.saved_model import export_saved_model
        from tests.restoring import restore

        trained = restore(untrained, "average:2")
        card = trained.card.with_options({"beam_size": 2})
        export_saved_model(trained.models, trained.vocabularies, folder / "model", card)

    return made_once("exported", make) / "model"


@pytest.fixture(scope="session")
def for_ctranslate2(untrained, made_once):
    """A directory for CTranslate2: the average of `untrained`'s checkpoints, with 2 beams."""

    def make(folder):
        from keras_transformer.kit.exchange.ctranslate2 import export_ctranslate2
        from tests.restoring import restore

        trained = restore(untrained, "average:2")
        card = trained.card.with_options({"beam_size": 2, "extra_length": 8})
        export_ctranslate2(trained.model, trained.vocabularies, folder / "model", card)

    return made_once("ctranslate2", make) / "model"


@pytest.fixture(scope="session")
def trained_run(prepared, made_once):
    """A model directory from `train_on`: two steps of a small model on `prepared`, seed 3."""

    def make(folder):
        from keras_transformer.core.training.run_config import LoopConfig
        from pipelines.training import train_on

        settings = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2}
        settings |= {"tokens_per_batch": 256, "seed": 3}
        loop = LoopConfig(train_steps=2)
        train_on(prepared, folder / "model", "tiny", settings, loop=loop)

    return made_once("trained", make) / "model"


@pytest.fixture(scope="session")
def traced_steps():
    """The steps made by `steps_traced_once`, with their variables and initial values."""
    return {}


@pytest.fixture(scope="module")
def steps_traced_once(traced_steps):
    """Makes calls of `train` and `adapt` with equal configurations share one traced step.

    Each call starts from the variables' initial values. Tracing takes most of the time of these
    short runs; tests that run programs as processes trace in each of them.
    """
    from keras_transformer.core.training import loop, step
    from keras_transformer.core.training.step import TrainingStep, XlaTrainingStep

    def step_of(kind, model_config, training_config, strategy):
        key = (kind, model_config, training_config)
        if key not in traced_steps:
            made = kind(model_config, training_config, strategy)
            variables = [*made.model.variables, *made.optimizer.variables]
            traced_steps[key] = made, [(variable, variable.numpy()) for variable in variables]
        made, initial = traced_steps[key]
        for variable, value in initial:
            variable.assign(value)
        return made

    plain = functools.partial(step_of, TrainingStep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "TrainingStep", plain)
        patch.setattr(loop, "XlaTrainingStep", functools.partial(step_of, XlaTrainingStep))
        patch.setattr(step, "TrainingStep", plain)  # imported on demand by pipelines/adaptation
        yield
