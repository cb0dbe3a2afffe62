"""Programs that XLA compiled, kept on disk for later processes, by TensorFlow's own cache.

TensorFlow names a file after the computation and the shapes of its inputs, so models of the same
shape share programs. The folder is named after what the file's name leaves out: the version, the
processor and XLA's options. If a file cannot be read or written, TensorFlow does not compile.
"""

import hashlib
import importlib.metadata
import os
import platform
import shutil
from pathlib import Path

FLAGS = "TF_XLA_FLAGS"
FOLDER = "tf_xla_persistent_cache_directory="  # a flag of TensorFlow
MOST_FILES = 100  # of one to a few MB each
FREE_BYTES = 2**28  # of the disk, at least


def default_folder() -> Path:
    """Returns the folder for this version of TensorFlow and this processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    processor = [line for line in lines if line.startswith(("model name", "flags"))]
    facts = [
        importlib.metadata.version("tensorflow"),
        platform.machine(),
        *sorted(set(processor)),
        os.environ.get("XLA_FLAGS", ""),
    ]
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "keras-transformer" / f"xla-{name}"


def keep_programs(folder: Path) -> None:
    """Keeps the programs of this process in a folder; call before TensorFlow first compiles.

    Nothing is kept in a folder that cannot be written, on a disk that is almost full, or if the
    user has chosen a folder with TensorFlow's own variable.
    """
    if FLAGS in os.environ or len(str(folder).split()) > 1:  # TensorFlow would see two flags
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > FREE_BYTES
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
        for file in files[:-MOST_FILES]:
            file.unlink()
    except OSError:
        return
    if is_usable:
        os.environ[FLAGS] = f"--{FOLDER}{folder}"


def remove_programs() -> None:
    """Removes the programs that are kept for this process: one of them may be damaged."""
    _, _, folder = os.environ.get(FLAGS, "").partition(FOLDER)
    if folder:
        for file in Path(folder).glob("xla_compile_cache__*"):
            file.unlink(missing_ok=True)
