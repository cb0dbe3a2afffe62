"""Imports TensorFlow without its startup messages, and with oneDNN.

TF_CPP_MIN_LOG_LEVEL hides TensorFlow's messages about the processor and missing GPUs, but not those
that two of its libraries log while loading: Abseil writes them to stderr at any level. It also does
not hide messages about vocabularies from SentencePiece in tensorflow_text.

No environment variable hides Abseil's messages: with TensorFlow 2.21, `import tensorflow` writes
them even with TF_CPP_MIN_LOG_LEVEL, ABSL_MIN_LOG_LEVEL and ABSL_STDERRTHRESHOLD set to 3. stderr
must be held back while TensorFlow is imported, and that may happen first in any module of the
library, or in the user's own code, as `import keras_transformer` leaves TensorFlow out. Hence a
finder in `sys.meta_path`.

On x86, TensorFlow enables oneDNN only on processors with AVX-512 VNNI, bfloat16 or AMX, unless an
environment variable overrides this. It is faster on other processors, too (docs/diary.md). A user's
own setting takes precedence, and on ARM, which was not measured, none is made. If the import aborts
the process, what it wrote to stderr is lost; TF_CPP_MIN_LOG_LEVEL=0 shows all.
"""

import contextlib
import importlib.abc
import importlib.machinery
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # 0: all messages; 1: warnings; 2: errors; 3: fatal errors
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"  # 1: on; 0: off
# Abseil's INFO messages, its startup notice, and SentencePiece's messages.
_INFORMATION = re.compile(
    rb"I\d{4} [\d:.]+ +\d+ \S+\.cc:\d+\] |WARNING: All log messages before "
    rb"|\w+\.cc\(\d+\) LOG\(INFO\) "
)


class QuietTensorFlow(importlib.abc.MetaPathFinder):
    """Finds TensorFlow like other finders, and suppresses the messages of its first import.

    Environment variables that the user has set are kept; level 0 shows all messages.
    """

    def find_spec(
        self, name: str, path=None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds `tensorflow`, and nothing else."""
        if name != "tensorflow":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if platform.machine() == "x86_64":
            os.environ.setdefault(ONEDNN, "1")
        os.environ.setdefault(LEVEL, "2" if _has_gpu() else "3")
        if spec is not None:
            execute = spec.loader.exec_module

            def execute_quietly(module: ModuleType) -> None:
                with without_information():
                    execute(module)

            spec.loader.exec_module = execute_quietly
        return spec


def _has_gpu() -> bool:
    """Whether there may be a GPU. Without one, CUDA's failure to start is not an error."""
    return any(Path("/dev").glob("nvidia*")) or Path("/dev/dxg").exists()  # the latter under WSL2


@contextlib.contextmanager
def without_information() -> Iterator[None]:
    """Holds back output to stderr, and then writes it without INFO messages.

    At level 0, nothing is held back.
    """
    if os.environ.get(LEVEL) == "0":
        yield
        return
    try:
        stderr = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            lines = [line for line in held if not _INFORMATION.match(line)]
            os.write(2, b"".join(lines))
