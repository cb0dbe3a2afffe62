"""Keeps the programs that XLA compiles on disk, for later processes.

TensorFlow can do this itself, but if a file of its folder is damaged, or the folder cannot be
written, the training step or the search fails. And two processes may write the same file. So
TensorFlow reads and writes in a temporary folder of the process, and whole files are copied between
this and the user's cache.
"""

import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from absl import logging

from keras_transformer.files.replacing import write_file

_FLAGS = "TF_XLA_FLAGS"  # TensorFlow reads it once, when it first compiles
_FLAG = "--tf_xla_persistent_cache_directory"
_FREE_SPACE = 2**30  # bytes that the temporary folder needs: TensorFlow fails on a full disk
_LARGEST_CACHE = 2**31  # bytes; the programs that were not used for longest are removed


class CompiledPrograms:
    """The programs of this process, and those in the user's cache.

    A file in the cache is called DIGEST-NAME, where NAME is TensorFlow's, so that a damaged file is
    recognized and left out.

    Args:
        cache: the folder in the user's cache, for one version and device.
        own: the folder that TensorFlow uses in this process.
    """

    def __init__(self, cache: Path, own: Path):
        self._cache = cache
        self._own = own

    def load(self) -> None:
        """Copies the cached programs to the folder of this process."""
        with _failures_logged():
            for path in self._cached():
                digest, _, name = path.name.partition("-")
                content = path.read_bytes()
                if _digest(content) == digest:
                    (self._own / name).write_bytes(content)

    def save(self) -> None:
        """Copies the programs of this process to the cache. Call it after a compilation."""
        with _failures_logged():
            self._cache.mkdir(parents=True, exist_ok=True)
            for path in self._own.glob("*.pb"):
                content = path.read_bytes()
                cached = self._cache / f"{_digest(content)}-{path.name}"
                if cached.exists():
                    os.utime(cached)  # it was used
                else:
                    write_file(cached, content)
            self._remove_oldest()

    def _cached(self) -> list[Path]:
        """Lists the files in the cache, the last used one first."""
        paths = self._cache.glob("*-*.pb")
        return sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)

    def _remove_oldest(self) -> None:
        size = 0
        for path in self._cached():
            size += path.stat().st_size
            if size > _LARGEST_CACHE:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def _failures_logged() -> Iterator[None]:
    """Continues without the cache, with one line, if it cannot be read or written."""
    try:
        yield
    except OSError as error:
        logging.info("compiled programs are not kept: %s", error)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def keep_compiled_programs() -> CompiledPrograms:
    """Makes TensorFlow write its compiled programs to a folder of this process.

    Call it before Keras is imported or TensorFlow uses a device: only then does TensorFlow read
    this setting. Afterwards, nothing is kept. The user's cache is ~/.cache/keras-transformer, or
    keras-transformer in $XDG_CACHE_HOME. A cache that the user has set in $TF_XLA_FLAGS takes
    precedence.
    """
    own = Path(tempfile.mkdtemp(prefix="compiled-programs-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    flags = os.environ.get(_FLAGS)
    if shutil.disk_usage(own).free < _FREE_SPACE:
        logging.info("compiled programs are not kept: %s has less than 1 GiB of space", own.parent)
    elif _FLAG not in (flags or ""):
        os.environ[_FLAGS] = f"{flags or ''} {_FLAG}={own}".strip()
    name = _version_and_device()  # TensorFlow now reads the flags
    if flags is None:
        os.environ.pop(_FLAGS, None)  # for child processes, which live longer than the folder
    else:
        os.environ[_FLAGS] = flags
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return CompiledPrograms(Path(home) / "keras-transformer" / name, own)


def _version_and_device() -> str:
    """Returns a name for all that a compiled program depends on, besides what it computes."""
    import tensorflow as tf

    devices = [
        tf.config.experimental.get_device_details(device)
        for device in tf.config.list_physical_devices("GPU")
    ]
    driver, processor = Path("/proc/driver/nvidia/version"), Path("/proc/cpuinfo")
    facts = [devices, tf.sysconfig.get_build_info(), platform.machine()]
    if driver.exists():
        facts.append(driver.read_text(encoding="utf-8"))
    if processor.exists():
        lines = processor.read_text(encoding="utf-8").splitlines()
        facts.append(sorted({line for line in lines if line.startswith(("flags", "Features"))}))
    version = importlib.metadata.version("tensorflow")
    return f"xla-{version}-{_digest(repr(facts).encode())}"
