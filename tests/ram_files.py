"""Remote files for tests: on ram://, which only TensorFlow, and only in this process, can read."""

import os

import tensorflow as tf
from tensorflow.python.platform import gfile  # which TensorFlow's checkpoints use

from keras_transformer.support.files.paths import RemotePath


class RamPath(RemotePath):
    """A path with further methods, which tests need and programs do not."""

    def write_bytes(self, content):
        self.unlink(missing_ok=True)  # ram:// would append
        with self.open("xb") as file:
            file.write(content)

    def write_text(self, content, encoding="utf-8"):
        self.write_bytes(content.encode(encoding))

    def read_text(self, encoding="utf-8"):
        return self.read_bytes().decode(encoding)

    def iterdir(self):
        with self.file_system() as gfile:
            return (self / name for name in gfile.listdir(str(self)))


def make_folders_folders(monkeypatch):
    """Fixes ram://, which takes prefixes of names for folders: "step-1", for "step-1.index"."""

    def listed(ask):
        def ask_again(path):
            path = os.fspath(path)
            folder, _, name = path.rstrip("/").rpartition("/")
            if not path.startswith("ram://") or folder == "ram:/":
                return ask(path)
            return ask(path) and ask(folder) and name in tf.io.gfile.listdir(folder)

        return ask_again

    for function in ("isdir", "exists"):
        monkeypatch.setattr(tf.io.gfile, function, listed(getattr(tf.io.gfile, function)))
    monkeypatch.setattr(gfile, "IsDirectory", tf.io.gfile.isdir)
