"""What all programs share: flags, one library call, one JSON line; errors in one line."""

import contextlib
import dataclasses
import json
import logging as standard_logging
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# The programs run from a checkout that is not installed, too.
FOLDER = Path(__file__).resolve().parent
if str(FOLDER.parent) not in sys.path:
    sys.path.insert(0, str(FOLDER.parent))

try:
    from absl import app, flags, logging
except ModuleNotFoundError as error:
    lacks = f"{sys.executable} lacks this project's packages ({error})"
    sys.exit(f"error: {lacks}. Install them as README.md says, and use their Python")

import keras_transformer  # noqa: E402
import pipelines  # noqa: E402
from keras_transformer.errors import InputError, reason, require  # noqa: E402
from keras_transformer.files import to_path  # noqa: E402

# Flags of `define_model_flags` that an export does not take.
OF_MODEL_DIR = ("checkpoint", "beam_size", "alpha", "batch_tokens")
OF_RESTRICTIONS = ("min_length", "no_repeat_ngram_size", "forbidden_phrases")
OWN_FOLDERS = (*keras_transformer.__path__, *pipelines.__path__)
VERBOSITY = "1: also show what TensorFlow and other libraries write; -1: no log but warnings."
# Of Google Cloud Storage. TensorFlow would wait for 20 minutes where no server answers.
PATIENCE = {"GCS_REQUEST_CONNECTION_TIMEOUT_SECS": "5", "GCS_RETRY_CONFIG_MAX_RETRIES": "5"}
# Reads to the end of its stdin, which is the end of the process that writes there, however it ends.
KEEP = """
import collections, sys
sys.stderr.buffer.writelines(collections.deque(sys.stdin.buffer, maxlen=1000))
"""


def run(main: Callable[[], dict[str, Any] | None]) -> None:
    """Runs `main` as a program: parses flags, prints its result as one JSON line on stdout.

    A wrong flag or an InputError ends with one line on stderr and exit code 1, never a traceback,
    and so does a file or stream that fails. Ctrl-C ends with exit code 130, and a reader of stdout
    that has gone with 141, as other programs of Unix.
    """
    _open_standard_streams()
    os.environ.update(PATIENCE | os.environ)
    logging.set_verbosity(logging.INFO)
    logging.get_absl_handler().addFilter(_is_shown)
    try:
        try:
            app.run(lambda arguments: _run(main, arguments), flags_parser=_parse_flags)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up_stdout()
        sys.exit(141)
    except OSError as error:
        _give_up_stdout()
        _fail(f"files and streams must be readable and writable. Received: {error}")


def as_typed(name: str, *arguments: str) -> str:
    """The command of a program, as a user of this checkout or installation types it."""
    program = f"python bin/{name}.py" if FOLDER.name == "bin" else f"keras-transformer {name}"
    return f"{program} {shlex.join(arguments)}"


def show_curves(model_dir: str | Path) -> None:
    """Says how to see the curves of a model."""
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={model_dir}"]
    print(f"curves: {shlex.join(command)}", file=sys.stderr)


def flag_values(config: type) -> dict[str, Any]:
    """The values of the flags that are named as fields of the dataclass `config`."""
    names = [field.name for field in dataclasses.fields(config)]
    return {name: flags.FLAGS[name].value for name in names if name in flags.FLAGS}


def define_model_flags(program: str) -> None:
    """Defines the flags of a program that uses a trained model, whatever holds it.

    Args:
        program: `__name__` of the program, whose --help shows them.
    """
    of_program = _shown_by(program)
    trained = "A trained model (bin/train.py), or a .keras file with its vocabulary beside it. "
    trained += "Several, separated by commas, are an ensemble."
    exported = "An export (bin/export.py), in place of --model_dir."
    checkpoints = "latest (the default), best, average:K, or a checkpoint's path. "
    checkpoints += "Several, separated by commas, are averaged."
    beams = "Beams; 1 is greedy search. 4 if not given; parsing: 21."
    penalty = "Length penalty; 0 is none. 0.6 if not given; parsing: 0.3."
    tokens = "Padded source tokens at once; 4096 if not given."
    flags.DEFINE_string("model_dir", None, trained, **of_program)
    flags.DEFINE_string("saved_model", None, exported, **of_program)
    flags.DEFINE_string("checkpoint", None, checkpoints, **of_program)
    flags.DEFINE_integer("beam_size", None, beams, lower_bound=1, **of_program)
    flags.DEFINE_float("alpha", None, penalty, lower_bound=0, **of_program)
    flags.DEFINE_integer("batch_tokens", None, tokens, lower_bound=1, **of_program)
    define_restrictions(program)


def define_restrictions(program: str) -> None:
    """Defines the flags of what translations must not be; the argument as above."""
    of_program = _shown_by(program)
    shortest = "Fewest subwords of a translation, its end counted."
    ngrams = "No translation has an n-gram of so many subwords twice."
    phrases = "A file of phrases that no translation contains, one a line."
    flags.DEFINE_integer("min_length", None, shortest, lower_bound=0, **of_program)
    flags.DEFINE_integer("no_repeat_ngram_size", None, ngrams, lower_bound=0, **of_program)
    flags.DEFINE_string("forbidden_phrases", None, phrases, **of_program)


def _shown_by(program: str) -> dict[str, str]:
    """An argument of flags.DEFINE_*; absl calls the started module by its file's name."""
    return {"module_name": sys.argv[0] if program == "__main__" else program}


def restrictions() -> dict[str, Any]:
    """What those flags say, as arguments of keras_transformer.load."""
    found = {name: flags.FLAGS[name].value for name in OF_RESTRICTIONS}
    lines = lines_of("forbidden_phrases")
    if lines is not None:
        found["forbidden_phrases"] = [line for line in lines if line.strip()]
    return found


def lines_of(flag: str) -> Iterator[str] | None:
    """The lines of the file that a flag names; None without it."""
    from pipelines.text_files import read_lines

    path = flags.FLAGS[flag].value
    if path is None:
        return None
    require(to_path(path).is_file(), f"--{flag} must be a file", repr(path))
    return read_lines(path, f"--{flag}")


def check_model_flags(fixed_in_export: tuple[str, ...] = ()) -> None:
    """Refuses flags of a model that cannot be, before TensorFlow is imported.

    Args:
        fixed_in_export: further flags of the program that an export does not take.
    """
    from keras_transformer.export.model_card import read_card, refuse_fixed
    from keras_transformer.training.model_directory import described_in, read_description

    values = flags.FLAGS
    given = [name for name in ("model_dir", "saved_model") if values[name].value is not None]
    rule = "exactly one of --model_dir and --saved_model must be given"
    require(len(given) == 1, rule, " and ".join(given) or "neither")
    if values.saved_model is not None:
        given = [
            name
            for name in (*OF_MODEL_DIR, *OF_RESTRICTIONS, *fixed_in_export)
            if values[name].present
        ]
        refuse_fixed({name: values[name].value for name in given})
        read_card(values.saved_model)
    else:
        for path in values.model_dir.split(","):
            if not path.endswith(".keras"):
                read_description(described_in(path))


def load_model(n_best: int | None = None, sampling=None, mbr: str | None = None):
    """Loads the model that the flags name; see keras_transformer.load."""
    values = flags.FLAGS
    path = values.saved_model if values.model_dir is None else values.model_dir.split(",")
    settings = {name: values[name].value for name in OF_MODEL_DIR} | restrictions()
    from keras_transformer.decoding.streams import share_cores
    from keras_transformer.loading import load

    share_cores()
    return load(path, **settings, n_best=n_best, sampling=sampling, mbr=mbr)


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keeps what libraries write to stderr, and shows it only if the program breaks off.

    They greet at every start, whatever the level of their logs. A process of its own keeps what
    they write to file descriptor 2, so that nothing is lost when TensorFlow aborts, and shows it
    when the descriptor is closed. The program itself writes to another descriptor.
    """
    if logging.get_verbosity() >= logging.DEBUG:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Process 1, a container's, takes all others with it when it ends, also the one with the text.
    if sys.stderr is None or sys.stderr is not sys.__stderr__ or os.getpid() == 1:
        yield
        return
    sys.stderr.flush()
    command = [sys.executable, "-ISc", KEEP]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    logging.get_absl_handler().python_handler.setStream(sys.stderr)
    os.dup2(keeper.stdin.fileno(), 2)
    keeper.stdin.close()
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        try:
            yield
            keeper.kill()
        except (InputError, OSError, KeyboardInterrupt, SystemExit):
            keeper.kill()
            raise
        finally:
            os.dup2(sys.stderr.fileno(), 2)
            keeper.wait()


@contextlib.contextmanager
def remote_errors() -> Iterator[None]:
    """Makes OSErrors of TensorFlow's errors at remote files that it reads and writes by itself."""
    try:
        yield
    except Exception as error:
        tf = sys.modules.get("tensorflow")
        if tf is None or not isinstance(error, tf.errors.OpError) or "://" not in str(error):
            raise
        raise OSError(reason(error)) from None


def _is_shown(record: standard_logging.LogRecord) -> bool:
    """Whether a line of the log is this project's, an error, or asked for."""
    verbose = logging.get_verbosity() >= logging.DEBUG
    is_error = record.levelno >= standard_logging.ERROR
    return verbose or is_error or record.pathname.startswith(OWN_FOLDERS)


def _parse_flags(arguments: list[str]) -> list[str]:
    values = flags.FLAGS
    values["verbosity"].help = VERBOSITY
    values.register_key_flag_for_module(arguments[0], values["verbosity"])  # --help lists it
    try:
        return values(["--help" if argument == "-h" else argument for argument in arguments])
    except flags.Error as error:
        missing = r"flag --\w+=None: Flag (--\w+) must have a value other than None"
        lines = [line.removesuffix(".") for line in str(error).splitlines()]
        message = re.sub(missing, r"\1 must be given", "; ".join(lines))
        _fail(f"{message} (--help lists the flags)")
    except SystemExit:  # of absl, after --help
        sys.exit(0)


def _run(main: Callable[[], dict[str, Any] | None], arguments: list[str]) -> None:
    if len(arguments) > 1:
        _fail(f"every argument must be a flag (--name=value). Received: {arguments[1]!r}")
    try:
        with quiet_libraries(), remote_errors():
            result = main()
    except InputError as error:
        _fail(with_flags(str(error)))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if result is not None:
        print(json.dumps(result, ensure_ascii=False), flush=True)


def with_flags(message: str) -> str:
    """Writes the names of arguments in an error of the library as flags of this program.

    The library names the argument that its caller gave: "beam_size must be at least 1". Who runs a
    program gave --beam_size. The first word of a message is replaced if it is a flag, and so is
    every later word of the rule that is a flag and has an underscore. What is said of a file
    ("FILE: max_length must be ...") and what was received stay as they are.
    """
    rule, separator, received = message.partition(". Received: ")
    place = re.match(r"(\S+?)(=\S+)?: ", rule)
    if place is not None and place[1] not in flags.FLAGS:
        return message

    def as_flag(match: re.Match) -> str:
        word = match[0]
        is_name = match.start() == 0 or "_" in word
        return f"--{word}" if is_name and word in flags.FLAGS else word

    return re.sub(r"(?<![\w./=-])[a-z]\w*", as_flag, rule) + separator + received


def _open_standard_streams() -> None:
    """Fills the place of closed ones: it would be given to the next file that is opened."""
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        _fail("stdout must be open, for the result. Received: a closed stream")


def _give_up_stdout() -> None:
    """Drops what stdout still holds, which would fail again at exit."""
    with contextlib.suppress(OSError):  # stdout may be no file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)
