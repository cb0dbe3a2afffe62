"""Programs that XLA compiled, kept on disk for later processes, by TensorFlow's own cache.

TensorFlow names a file after the computation and the shapes of its inputs, so models of the same
shape share programs. The folder is named after what the file's name leaves out: the version, the
processor, the GPUs and their driver, and XLA's options. If a file cannot be read or written,
TensorFlow does not compile.

So a folder is used only if a file of 4 MB can be written. After a failure, all files are removed,
and the function is traced once more, as TensorFlow remembers its error.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from absl import logging

from keras_transformer.support.errors import lacks_memory, with_file_name
from keras_transformer.support.files.paths import cache_folder

T = TypeVar("T")

FLAGS = "TF_XLA_FLAGS"
FOLDER = "tf_xla_persistent_cache_directory="  # a flag of TensorFlow
FACT = re.compile("model name|flags|NVRM version|Model:")  # of a processor, a driver or a GPU
MOST_FILES = 100
LARGEST_FILE = 2**22  # in bytes; most are smaller
FREE_BYTES = 2**28  # of the disk, at least


def default_folder() -> Path:
    """Returns the folder for this version of TensorFlow, this processor and these GPUs."""
    facts = [os.environ.get("XLA_FLAGS", ""), platform.machine()]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # CTranslate2 alone
        facts.append(importlib.metadata.version("tensorflow"))
    driver = Path("/proc/driver/nvidia")
    for file in Path("/proc/cpuinfo"), driver / "version", *driver.glob("gpus/*/information"):
        with contextlib.suppress(OSError):
            facts += sorted({line for line in file.read_text().splitlines() if FACT.match(line)})
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return cache_folder() / f"xla-{name}"


def keep_programs(folder: Path) -> None:
    """Keeps the programs of this process in a folder.

    TensorFlow reads this setting when it first looks for devices, so call it before importing
    Keras.

    Nothing is kept in a folder that cannot be written, on a disk that is almost full, or if the
    user has chosen a folder with TensorFlow's own variable.
    """
    if FLAGS in os.environ or len(str(folder).split()) > 1:  # TensorFlow would see two flags
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(LARGEST_FILE))
        has_room = shutil.disk_usage(folder).free > FREE_BYTES
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
        for file in files[:-MOST_FILES]:
            file.unlink()
    except OSError:
        return
    if has_room:
        os.environ[FLAGS] = f"--{FOLDER}{folder}"


def remove_programs(folder: Path) -> None:
    """Removes the programs from a folder, as far as possible."""
    for file in folder.glob("xla_compile_cache__*"):
        with contextlib.suppress(OSError):
            file.unlink()


def compiled(compile: Callable[[], T]) -> T:
    """Calls a function that compiles; if it fails, once more without the programs on disk.

    Raises:
        OSError: if a program cannot be written, although there was room at the beginning.
        tf.errors.OpError: if XLA or the device fails.
    """
    import tensorflow as tf  # after keep_programs

    _, _, folder = os.environ.get(FLAGS, "").partition(FOLDER)
    try:
        return compile()
    except tf.errors.OpError as error:
        if not folder or lacks_memory(error):
            raise
    logging.info("XLA compiles anew, without the programs in %s", folder)
    remove_programs(Path(folder))
    try:
        return compile()
    except tf.errors.OpError as error:
        if folder not in str(error):
            raise
        full = with_file_name(error, folder)
        full.add_note("to keep programs elsewhere, set XDG_CACHE_HOME")
        raise full from None
