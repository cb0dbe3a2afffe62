"""TensorFlow, imported without the lines that it writes each time, and with oneDNN.

TF_CPP_MIN_LOG_LEVEL hides what TensorFlow says of the processor and of missing GPUs, but not what
two of its libraries log while they are loaded: whatever the level, Abseil writes that to stderr.
Neither does it hide what the SentencePiece in tensorflow_text says of a vocabulary.

TensorFlow uses oneDNN on x86 only where a processor has AVX-512 VNNI, bfloat16 or AMX, unless a
variable says otherwise. It is faster on the others, too.
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

LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # 0: all lines; 1: warnings; 2: errors; 3: what ends the process
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"  # 1: on; 0: off
# Lines of information of Abseil's log, how it introduces itself, and lines of SentencePiece's.
_INFORMATION = re.compile(
    rb"I\d{4} [\d:.]+ +\d+ \S+\.cc:\d+\] |WARNING: All log messages before "
    rb"|\w+\.cc\(\d+\) LOG\(INFO\) "
)


class QuietTensorFlow(importlib.abc.MetaPathFinder):
    """Finds TensorFlow like other finders, and leaves out the lines of its first import.

    Variables that the user has set are kept, and with a level of 0, all lines are shown.
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
    """Whether there may be a GPU. Without one, that CUDA cannot start is no error."""
    return any(Path("/dev").glob("nvidia*")) or Path("/dev/dxg").exists()  # the latter under WSL2


@contextlib.contextmanager
def without_information() -> Iterator[None]:
    """Holds back what is written to stderr, and then writes it without lines of information.

    With a level of 0, nothing is held back.
    """
    if os.environ.get(LEVEL) == "0":
        yield
        return
    try:
        stderr = os.dup(2)
    except OSError:  # it is closed
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
