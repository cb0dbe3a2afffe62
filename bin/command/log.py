"""The log of a program on stderr: its own lines, and those of libraries if they are requested."""

import contextlib
import logging as standard_logging
import os
import sys
import warnings
from collections.abc import Iterator

from command import PROGRAMS_FOLDER

from absl import logging

import keras_transformer
import pipelines
from keras_transformer.support.progress import AboveBars

OWN_FOLDERS = (str(PROGRAMS_FOLDER), *keras_transformer.__path__, *pipelines.__path__)


def log_to_stderr() -> None:
    """Writes log lines in the form of programs, above progress bars."""
    handler = logging.get_absl_handler()
    handler.addFilter(_is_shown)
    handler.setFormatter(_Formatter())
    handler.python_handler.setStream(AboveBars())


def log_dates() -> None:
    """Adds the date to the time of each line, for programs that run for days."""
    _Formatter.time_format = "%Y-%m-%d %H:%M:%S"


def _is_shown(record: standard_logging.LogRecord) -> bool:
    """Whether a log record is this project's, an error, or requested."""
    verbose = logging.get_verbosity() >= logging.DEBUG
    is_error = record.levelno >= standard_logging.ERROR
    return verbose or is_error or record.pathname.startswith(OWN_FOLDERS)


class _Formatter(logging.PythonFormatter):
    """Log lines as "12:34:56 message"; with --verbosity=1, those of absl with files and threads."""

    time_format = "%H:%M:%S"

    def format(self, record: standard_logging.LogRecord) -> str:
        if logging.get_verbosity() >= logging.DEBUG:
            return super().format(record)
        is_information = record.levelno <= standard_logging.INFO
        level = "" if is_information else f"{record.levelname.lower()}: "
        message = standard_logging.Formatter.format(self, record)
        return f"{self.formatTime(record, self.time_format)} {level}{message}"


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Suppresses what libraries write to stderr at startup, unless --verbosity=1.

    quiet_tensorflow.py does so for TensorFlow; warning and log filters do so for the others.
    """
    if logging.get_verbosity() >= logging.DEBUG:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0")  # see quiet_tensorflow.py
        yield
        return
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        yield
