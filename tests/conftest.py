"""Sets up the tests: TensorFlow quiet and on the CPU only, three tiers of tests, shared fixtures.

Plain tests are those of the files in PLAIN: they run where TensorFlow cannot be imported, in less
than a minute (`make test-plain`). A test of these files that needs it is marked `tensorflow`.

Tests are marked `slow` if they need something that takes long: trainings that are killed, several
workers, notebooks, a browser, other engines, or full numbers of random cases (`make test-slow`).

`make test` runs all but the slow tests.
"""

import functools
import gc
import os
import random
import re
import sys
from pathlib import Path

# The tests expect the CPU's numbers and messages, even on a machine with a GPU.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# One thread per test process: models are tiny, and each core has a process.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_XLA_FLAGS", "")  # no compiled searches in the user's cache

import numpy as np
import pytest

pytest_plugins = ["tests.program_fixtures", "tests.worlds"]

# Most objects are TensorFlow's and stay alive: scanning them again and again takes long.
gc.set_threshold(1_000_000, 50, 1000)

# The files, and folders of files, of the plain tier.
PLAIN = (
    "benchmarks/test_gpu.py",
    "benchmarks/test_gpu_step.py",
    "bin/test_command.py",
    "bin/test_paper_tables.py",
    "bin/test_prepare_data.py",
    "core/test_config.py",
    "core/search/test_config.py",
    "core/search/test_streams.py",
    "core/training/test_checkpoint_files.py",
    "core/training/test_hardly_trained.py",
    "core/training/test_interruption.py",
    "core/training/test_model_directory.py",
    "core/vocabulary/",
    "docs/",
    "kit/documents/",
    "kit/exchange/test_formats.py",
    "kit/exchange/test_tensors.py",
    "kit/figures/test_page.py",
    "kit/figures/test_views.py",
    "kit/paper/test_tables.py",
    "kit/paper/test_trained_rows.py",
    "kit/parsing/",
    "kit/serving/",
    "pipelines/test_data_files.py",
    "pipelines/test_ibm_model_1.py",
    "pipelines/test_many_languages.py",
    "pipelines/test_pair_files.py",
    "pipelines/test_sample_text.py",
    "pipelines/test_source_options.py",
    "pipelines/test_term_annotation.py",
    "pipelines/test_vocabulary.py",
    "pipelines/test_word_pairs.py",
    "support/files/",
    "support/test_fields.py",
    "support/test_output_files.py",
    "support/test_progress.py",
    "support/test_text_changes.py",
    "support/test_text_table.py",
    "test_documents.py",
    "test_structure.py",
    "test_type_hints.py",
    "use/evaluate/test_calibration.py",
    "use/evaluate/test_length_penalty.py",
    "use/evaluate/test_robustness.py",
    "use/evaluate/test_translation.py",
    "use/store/test_card.py",
    "use/store/test_decoding.py",
    "use/store/test_languages.py",
    "use/store/test_results.py",
    "use/translate/test_answers.py",
    "use/translate/test_confidence.py",
    "use/translate/test_minimum_risk.py",
    "use/translate/test_search_request.py",
    "use/translate/test_terminology.py",
)

# The files that take longest, longest first. They start first, so that no worker is left with one
# at the end. Before them, the file that uses Hypothesis, which once collects all garbage of its
# process: of that there is little at first.
LONG = (
    "test_damaged_files",
    "test_notebooks",
    "test_quickstart",
    "test_keras_objects",
    "test_loop",
    "test_loading",
    "test_end_to_end",
    "test_saved_model",
    "test_compiled_model",
    "test_translator",
    "test_transformer",
    "test_xla",
    "test_page",
    "test_in_browser",
    "test_train_killed",
    "test_ctranslate2",
    "test_jax",
    "test_cluster",
    "test_reproduce",
    "test_train_workers",
    "test_greedy_search",
    "test_strategy",
    "test_step",
    "test_adapters",
    "test_translate",
    "test_tensorflow_engine",
    "test_parsing",
)

# With TESTS_MUST_RUN=1, a skipped test is an error, unless its reason contains one of these.
MAY_BE_SKIPPED = {
    "corpora": "they are no part of the repository",
    "[beam]": "its packages contradict the others: make test-beam",
    "marian-test]": "PyTorch and what it brings are 6 GB: make test-marian",
    "[bench]": "PyTorch again",
    "one core": "several processes need several cores",
}


@pytest.fixture(autouse=True)
def _few_objects_to_collect():
    """Has gc.collect look at a test's own objects: TensorFlow's are many, and take a second or two.

    Keras calls it for each matrix that it quantizes.
    """
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def converted_models(tmp_path_factory):
    """The folder in which this process keeps its converted models, in place of the user's cache."""
    from keras_transformer.use.store import converted

    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(converted, "cache_folder", lambda: folder)
        yield folder


@pytest.fixture(autouse=True)
def _seeded():
    """Seeds Python and NumPy. Keras draws seeds for layers and initializers from Python's."""
    from tests.program_fixtures import SEED

    random.seed(SEED)
    np.random.seed(SEED)


def is_plain(path):
    """Whether a path is in the plain tier."""
    tests = Path(__file__).parent
    return path.is_relative_to(tests) and path.relative_to(tests).as_posix().startswith(PLAIN)


def pytest_configure(config):
    if config.option.markexpr == "plain":
        sys.modules["tensorflow"] = None  # whoever imports it fails


def pytest_ignore_collect(collection_path, config):
    """Has the plain tier not import the files and folders of other tests."""
    if config.option.markexpr != "plain" or is_plain(collection_path):
        return None
    return collection_path.is_file() or not list(filter(is_plain, collection_path.rglob("*.py")))


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(config, items):
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        forks = "run_program" in item.fixturenames  # from a process that has imported TensorFlow
        if is_plain(item.path) and not marks & {"slow", "tensorflow"} and not forks:
            item.add_marker("plain")
    if not config.pluginmanager.has_plugin("randomly"):
        place = {stem: number for number, stem in enumerate(LONG)}
        items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))


def skip_reasons(terminalreporter):
    """Returns the reason of each skipped test."""
    return [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]


def pytest_terminal_summary(terminalreporter):
    """Says what to install to run the skipped tests."""
    reasons = skip_reasons(terminalreporter)
    found = {command for reason in reasons for command in re.findall("install: (.*)", reason)}
    if found:
        line = (
            f"{len(reasons)} tests were skipped. To run them, install: {'; '.join(sorted(found))}"
        )
        terminalreporter.write_line(line, yellow=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    gc.freeze()  # pytest collects garbage five times at the end, for the sake of warnings
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("TESTS_MUST_RUN"):
        return
    wrong = [r for r in skip_reasons(reporter) if not any(known in r for known in MAY_BE_SKIPPED)]
    if wrong:
        reporter.write_line(f"error: {len(wrong)} tests must not be skipped: {sorted(set(wrong))}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def corpora():
    """The folder of real text and documents that the environment variable CORPORA names."""
    folder = os.environ.get("CORPORA")  # make exports it, possibly empty
    if not folder:
        pytest.skip("install: corpora, named by CORPORA")
    return Path(folder)


@pytest.fixture(params=["local", pytest.param("remote", marks=pytest.mark.tensorflow)])
def any_folder(request, tmp_path, monkeypatch):
    """An empty folder, on the disk or on a file system that only TensorFlow supports.

    The latter is ram://, or what TEST_REMOTE names, such as gs://BUCKET/FOLDER/.
    """
    if request.param == "local":
        yield tmp_path
        return
    from keras_transformer.support.files.paths import remove_folder
    from tests import ram_files

    ram_files.make_folders_folders(monkeypatch)
    folder = ram_files.RamPath(f"{os.environ.get('TEST_REMOTE', 'ram://')}{tmp_path.name}")
    folder.mkdir()
    yield folder
    remove_folder(folder)


@pytest.fixture(scope="session")
def characters():
    """A vocabulary of ASCII characters, for both sides."""
    from keras_transformer.core.vocabulary.pair import VocabularyPair
    from tests.small_models import Characters

    return VocabularyPair(*[Characters()] * 2)


@pytest.fixture(scope="session")
def make_model():
    """`small_model`, cached by its arguments, as building a model takes most of a second.

    Tests that change their model call `small_model` directly.
    """
    from tests.small_models import small_model

    return functools.cache(small_model)


@pytest.fixture(scope="session")
def model(make_model):
    return make_model()
