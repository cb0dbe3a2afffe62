"""Ways to run programs, and a model directory to go with prepared data.

`run_program` starts a process, as a user does; `call_program` does the same in the test process,
where TensorFlow has already been imported. `load_program` returns the module.
"""

import contextlib
import functools
import importlib.util
import io
import json
import logging as standard_logging
import os
import re
import sys
import types
from pathlib import Path

import pytest
from absl import app, flags, logging

from tests.processes import run_python

BIN = Path(__file__).resolve().parents[1] / "bin"
PAIRS = [
    ("the cat sat on the mat", "die katze sass auf der matte"),
    ("a dog ran to the house", "ein hund lief zum haus"),
    ("big red cats and small dogs", "grosse rote katzen und kleine hunde"),
]


# Seeds the random numbers in every test without a seed of its own.
SEED = int(os.environ.get("TEST_SEED", "20170612"))


REFERENCE = BIN.parent / "docs" / "reference" / "results.md"


@functools.cache
def documented_fields():
    """Program -> the fields of its result, and those of several programs, in the reference."""
    _, *sections = re.split(r"^#+ (.+)\n", REFERENCE.read_text(encoding="utf-8"), flags=re.M)
    titles, texts = sections[::2], sections[1::2]
    fields = [set(re.findall(r"`([a-z][\w-]*)`", text)) for text in texts]
    shared, programs = fields[0] | fields[1], titles[2:]
    return {name: shared | own for name, own in zip(programs, fields[2:], strict=True)}


def ended(name, code, output, errors):
    """Returns and checks a program's exit code, output, errors, and result (its JSON line)."""
    lines = output.splitlines()
    result = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None
    unknown = set(result or ()) - documented_fields()[name]
    assert not unknown, f"docs/reference/results.md has no such fields of {name}: {unknown}"
    assert "Traceback" not in errors, errors
    assert not foreign_lines(errors), errors
    return types.SimpleNamespace(code=code, output=output, errors=errors, result=result)


# Lines that TensorFlow writes when it is imported, and TensorFlow Text when it loads a vocabulary,
# whatever their settings.
GREETING = re.compile(
    r"WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR\n"
    r"|[IW]0000 \S+ +\d+ \w+\.cc:\d+\] .*\n"
    r"|normalizer\.cc\(\d+\) LOG\(INFO\) .*\n"
)


def without_greeting(errors):
    """Removes from stderr the lines that no setting of TensorFlow can suppress."""
    return GREETING.sub("", errors)


def foreign_lines(errors):
    """Finds output of libraries: lines in absl's own format, SentencePiece's log, warnings."""
    errors = without_greeting(errors)
    return re.findall(r"[IWEF]\d{4} \S+ +\d+ \S+:\d+\]|LOG\(|Warning: ", errors)


_TRANSLATORS = {}  # by files and options


def loading_once(translator_of):
    """Wraps `translator_of` to return the same translator while its model's files do not change.

    Programs load a model on every call and trace its search, which takes seconds.
    """

    def load_or_remember(stored, options, needs_tensorflow=False):
        folders = [Path(each) for each in stored.where.paths]
        files = sorted(file for folder in folders for file in folder.rglob("*") if file.is_file())
        state = [(str(file.resolve()), file.stat().st_mtime_ns) for file in files]
        chosen = {name: value for name, value in options.items() if value is not None}
        key = repr((stored.where, state, sorted(chosen.items()), needs_tensorflow))
        if not files or key not in _TRANSLATORS:
            _TRANSLATORS[key] = translator_of(stored, options, needs_tensorflow)
        return _TRANSLATORS[key]

    return load_or_remember


@pytest.fixture(scope="session")
def run_program(tmp_path_factory):
    """Runs a program from bin/ as a process; see `ended`."""
    folder = tmp_path_factory.mktemp("processes")

    def run(name, *arguments, **options):
        return ended(name, *run_python(BIN / f"{name}.py", *arguments, folder=folder, **options))

    return run


@pytest.fixture(scope="session")
def call_program():
    """Runs a program from bin/ in this process; see `ended`.

    The errors do not include what TensorFlow writes directly to this process's file descriptors.
    """

    def call(name, *arguments, stdin=b"", cwd=".", terminal=False):
        streams = {name: io.TextIOWrapper(io.BytesIO(), "utf-8") for name in ("stdout", "stderr")}
        streams["stdout"].isatty = lambda: terminal
        streams["stdin"] = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
        with contextlib.ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            for stream in streams:
                patch.setattr(sys, stream, streams[stream])
            # The module's name, by which absl knows the program's own flags.
            patch.setattr(sys, "argv", [f"loaded_{name}", *arguments])
            stack.enter_context(logs_to(streams["stderr"]))
            stack.enter_context(contextlib.chdir(cwd))
            loading = sys.modules.get("keras_transformer.loading")
            if loading is not None:  # else a wrong flag would import TensorFlow
                patch.setattr(loading, "translator_of", loading_once(loading.translator_of))
            program = stack.enter_context(loaded(name))
            with pytest.raises(SystemExit) as ending:
                program.run(program.main)
            for stream in ("stdout", "stderr"):
                streams[stream].flush()
        output = streams["stdout"].buffer.getvalue().decode(errors="replace")  # may be an archive
        errors = streams["stderr"].buffer.getvalue().decode()
        return ended(name, ending.value.code or 0, output, errors)

    return call


@pytest.fixture
def load_program():
    """Returns the module of bin/NAME.py with its flags parsed, ready for main()."""
    with contextlib.ExitStack() as stack:

        def load(name, *arguments):
            stack.close()  # programs define flags of the same names
            module = stack.enter_context(loaded(name))
            flags.FLAGS([name, *arguments])
            return module

        yield load


@contextlib.contextmanager
def loaded(name):
    """Loads a program's module, and removes its flags at the end of the context."""
    app.define_help_flags()  # as every program does, once per process
    others = set(flags.FLAGS)
    spec = importlib.util.spec_from_file_location(f"loaded_{name}", BIN / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BIN)
        patch.setitem(sys.modules, spec.name, module)
        verbosity = logging.get_verbosity()
        flags.FLAGS["verbosity"].unparse()  # TensorFlow sets it when it saves a model
        try:
            spec.loader.exec_module(module)
            defined = {flag.name for flag in flags.FLAGS.get_key_flags_for_module(module)}
            yield module
        finally:
            for flag in defined - others:
                delattr(flags.FLAGS, flag)
            flags.FLAGS["verbosity"].unparse()  # as in a new process
            flags.FLAGS.set_default("verbosity", verbosity)


@contextlib.contextmanager
def logs_to(stream):
    """Writes absl's log to a stream, as app.run writes it to stderr."""
    handler, root = logging.get_absl_handler(), standard_logging.getLogger()
    before = handler.python_handler.setStream(stream)
    logging.use_absl_handler()
    try:
        yield
    finally:
        handler.python_handler.setStream(before)
        root.removeHandler(handler)


def make_model_dir(data_dir, model_dir, checkpoints, **other_sizes):
    """Makes a model directory with random weights; checkpoints: {step: (seed, validation loss)}."""
    import keras

    from keras_transformer.core.config import TrainingConfig, TransformerConfig
    from keras_transformer.core.model.transformer import Transformer
    from keras_transformer.core.training.checkpoints import CheckpointStore
    from keras_transformer.core.training.model_directory import ModelDescription, create_or_check
    from pipelines.prepare.metadata import read_metadata

    metadata = read_metadata(data_dir)
    sizes = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2, "dropout": 0.1}
    sizes |= {"source_vocab_size": metadata.source_vocab_size, **other_sizes}
    config = TransformerConfig(metadata.vocab_size, **sizes)
    description = ModelDescription(
        "tiny",
        config,
        TrainingConfig(),
        vocabulary=metadata.vocabulary,
        vocabulary_fingerprint=metadata.fingerprint,
        source_vocabulary=metadata.source_vocabulary,
        source_vocabulary_fingerprint=metadata.source_fingerprint,
        max_length=metadata.max_length,
        task=metadata.task,
        task_options=metadata.task_options,
    )
    create_or_check(model_dir, description, data_dir)
    store = CheckpointStore(model_dir, config)
    for step, (seed, loss) in checkpoints.items():
        keras.utils.set_random_seed(seed)
        variables = [variable.value for variable in Transformer(config).variables]
        store.save({"model": variables}, step, validation={"loss": loss})
    return model_dir
