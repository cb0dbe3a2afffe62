"""TensorFlow on the CPU alone, quiet, and the same random numbers in every test."""

import gc
import os

# What the suite checks are the CPU's numbers and messages, on a machine with a GPU too.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# One thread for each process of the suite: models are tiny, and there is a process per core.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import pytest

pytest_plugins = ["tests.program_fixtures"]

# Most objects are TensorFlow's, and live on: to look through them again and again takes long.
gc.set_threshold(100_000, 50, 1000)


@pytest.fixture(autouse=True)
def _seeded():
    import keras

    from tests.program_fixtures import SEED

    keras.utils.set_random_seed(SEED)


# Their tests take longest. They start first, so that no process is left with one in the end.
LONG = ("test_train_killed", "test_end_to_end", "test_strategy", "test_train_workers", "test_xla")


def pytest_collection_modifyitems(config, items):
    if not config.pluginmanager.has_plugin("randomly"):
        items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.fixture(params=["local", "remote"])
def any_folder(request, tmp_path, monkeypatch):
    """An empty folder: one on the disk, and one of a file system that only TensorFlow has.

    That is ram://, or where TEST_REMOTE says: gs://BUCKET/FOLDER/.
    """
    if request.param == "local":
        yield tmp_path
        return
    from keras_transformer.files.paths import remove_folder
    from tests import ram_files

    ram_files.make_folders_folders(monkeypatch)
    folder = ram_files.RamPath(f"{os.environ.get('TEST_REMOTE', 'ram://')}{tmp_path.name}")
    folder.mkdir()
    yield folder
    remove_folder(folder)
