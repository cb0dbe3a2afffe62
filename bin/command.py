"""Shared by all programs: flags, one library call, one JSON line; one-line errors."""

import collections
import contextlib
import dataclasses
import functools
import json
import logging as standard_logging
import math
import os
import re
import shlex
import signal
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any


def _end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """The hook for uncaught exceptions; Ctrl-C prints no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = _end  # now, because the following imports take time

# The programs also run from a checkout that is not installed.
FOLDER = Path(__file__).resolve().parent
if str(FOLDER.parent) not in sys.path:
    sys.path.insert(0, str(FOLDER.parent))

try:
    from absl import app, flags, logging
except ModuleNotFoundError as error:
    lacks = f"{sys.executable} lacks this project's packages ({error})"
    sys.exit(f"error: {lacks}. Install them as README.md describes and use that Python")

from command_help import ADVANCED, full_help, short_help  # noqa: E402

import keras_transformer  # noqa: E402
import pipelines  # noqa: E402
from keras_transformer.errors import InputError, reason, require  # noqa: E402
from keras_transformer.fields import options_of  # noqa: E402
from keras_transformer.files.paths import to_path  # noqa: E402
from keras_transformer.progress import AboveBars  # noqa: E402
from keras_transformer.search.config import DecodingConfig  # noqa: E402

flags.disclaim_key_flags()  # the flags defined here belong to the calling program

OWN_FOLDERS = (str(FOLDER), *keras_transformer.__path__, *pipelines.__path__)
VERBOSITY = (
    "0: progress and warnings; 1: also messages from TensorFlow and other libraries; -1: warnings "
    "only."
)
# Environment variables for TensorFlow, unless already set.
ENVIRONMENT = {
    # Without it, TensorFlow waits 20 minutes if no Google Cloud Storage server answers.
    "GCS_REQUEST_CONNECTION_TIMEOUT_SECS": "5",
    "GCS_RETRY_CONFIG_MAX_RETRIES": "5",
}
FLAG_OF_TYPE = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
TENSORFLOW_PACKAGES = ("tensorflow", "tensorflow_text", "keras")  # may be missing at run time
HELP = ("-h", "--help", "--helpshort")
FULL_HELP = "--helpfull"
LONGEST_MESSAGE = 2000  # characters; longer messages are cut in the middle
ALL_LINES = {"TF_CPP_MIN_LOG_LEVEL": "0"}  # see keras_transformer/quiet_tensorflow.py

FILES_OF_LINES = ("forbidden_phrases",)  # search options whose flag names a file
# Exports do not have this option, and no result reports it.
WITHOUT_EFFECT = ("batch_tokens",)


def _show_all(heading: str) -> bool:
    return True


def run(
    main: Callable[[], dict[str, Any] | None], is_relevant: Callable[[str], bool] = _show_all
) -> None:
    """Runs `main` as a program: parses flags, prints its result as one JSON line on stdout.

    Args:
        main: the program; returns its result, if it has one.
        is_relevant: whether --help lists the flags under a heading, given the other flags.

    A wrong flag, an InputError, or a failing file or stream ends with one line on stderr and exit
    code 1, never a traceback. As usual on Unix, the exit code is 130 after Ctrl-C, 143 after
    SIGTERM, and 141 if the reader of stdout has gone.
    """
    _open_standard_streams()
    set_defaults(ENVIRONMENT)
    flags.FLAGS.set_default("verbosity", logging.INFO)
    handler = logging.get_absl_handler()
    handler.addFilter(_is_shown)
    handler.setFormatter(_Formatter())
    handler.python_handler.setStream(AboveBars())
    parse = functools.partial(_parse_flags, is_relevant=is_relevant)
    try:
        try:
            with _ending_at_sigterm():
                app.run(lambda arguments: _run(main, arguments), flags_parser=parse)
        finally:
            sys.stdout.flush()
    except OSError as error:
        _give_up_stdout()
        if isinstance(error, BrokenPipeError) and error.filename is None:
            sys.exit(141)
        _fail(_of_system(error))


@contextlib.contextmanager
def _ending_at_sigterm() -> Iterator[None]:
    """Makes SIGTERM raise SystemExit, so that no temporary file is left; a second one kills."""

    def end(number: int, frame: types.FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        sys.exit(128 + number)

    earlier = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def as_typed(name: str, *arguments: str) -> str:
    """Returns a program's command as the user of this checkout or installation types it."""
    program = f"python bin/{name}.py" if FOLDER.name == "bin" else f"keras-transformer {name}"
    return f"{program} {shlex.join(arguments)}"


def show_curves(model_dir: str | Path) -> None:
    """Prints how to view a model's training curves."""
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={model_dir}"]
    print(f"curves: {shlex.join(command)}", file=sys.stderr)


def define_flags(config: type, heading: str) -> None:
    """Defines a flag for each option that a dataclass adds to its base classes' options.

    Args:
        config: a dataclass; its options are the fields made with keras_transformer.fields.option,
            which provide the flags' defaults, choices and help texts.
        heading: shown above these flags by --help.
    """
    kinds = typing.get_type_hints(config, include_extras=True)
    for name, field in options_of(config).items():
        if name in vars(config)["__annotations__"]:
            define_flag(name, kinds[name], field.default, field.metadata["help"], heading)
            if field.metadata["is_advanced"]:
                ADVANCED.add(name)


def define_flag(
    name: str, annotation: Any, default: Any, help: str, heading: str, **options: Any
) -> None:
    """Defines a flag.

    Args:
        annotation: bool, int, float, str, or a collection, whose items are separated by commas;
            optionally with None, or annotated with a rule from keras_transformer.fields.
        heading: shown above the flag by --help.
        options: further absl options, such as lower_bound.
    """
    kind, choices = _type_and_choices(annotation)
    if choices:
        flags.DEFINE_enum(name, default, choices, help, module_name=heading, **options)
    else:
        FLAG_OF_TYPE.get(kind, flags.DEFINE_list)(
            name, default, help, module_name=heading, **options
        )
    flags.declare_key_flag(name)


def _type_and_choices(annotation: Any) -> tuple[type, tuple[str, ...]]:
    """Returns a field's type without None and its rule, and the rule's choices."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return _type_and_choices(arguments[0])
    if origin is Annotated:
        return arguments[0], arguments[1].choices
    return origin or annotation, ()


def flag_values(config: type) -> dict[str, Any]:
    """Returns the values of the flags named after fields of the dataclass `config`."""
    names = [field.name for field in dataclasses.fields(config)]
    return {name: flags.FLAGS[name].value for name in names if name in flags.FLAGS}


def define_model_flags(takes_exports: bool = True) -> None:
    """Defines the flags for a program that uses a trained model.

    Args:
        takes_exports: whether the program also accepts --saved_model in place of --model_dir.
    """
    define = functools.partial(define_flag, default=None, heading="model")
    help = (
        "Trained model (bin/train.py), or a .keras file next to its vocabulary. Several, separated "
        "by commas, form an ensemble."
    )
    define("model_dir", str, help=help, required=not takes_exports)
    if takes_exports:
        define("saved_model", str, help="Export (bin/export.py), in place of --model_dir.")
    help = (
        "latest, best, average:K, or the path of a checkpoint; several, separated by commas, are "
        "averaged. Default: the average written by average_checkpoints, or else the latest."
    )
    define("checkpoint", str, help=help)
    help = "Adapter (bin/train.py with --lora_rank) to add to its base, --model_dir."
    define("adapter", str, help=help)
    help = "Scale of the adapter's updates, 1 by default; a smaller one stays closer to the base."
    define("adapter_scale", float, help=help, lower_bound=0)
    kinds = typing.get_type_hints(DecodingConfig, include_extras=True)
    for name, field in search_fields().items():
        if takes_exports or name not in WITHOUT_EFFECT:
            kind = str if name in FILES_OF_LINES else kinds[name]
            define_flag(name, kind, None, field.metadata["help"], "search")


def search_fields() -> dict[str, dataclasses.Field]:
    """Returns the search options that are flags, by name."""
    return options_of(DecodingConfig)


def given_search_flags() -> dict[str, Any]:
    """Returns the search flags that were given, with the values as typed."""
    return {
        name: flags.FLAGS[name].value
        for name in search_fields()
        if name not in WITHOUT_EFFECT and flags.FLAGS[name].present
    }


def search_options() -> dict[str, Any]:
    """Returns the given search options as keras_transformer.load takes them."""
    options = {}
    for name in search_fields():
        is_given = name in flags.FLAGS and flags.FLAGS[name].value is not None
        if is_given and name in FILES_OF_LINES:
            lines = lines_of_file(flags.FLAGS[name].value, name)
            options[name] = tuple(line for line in lines if line.strip())
        elif is_given:
            options[name] = flags.FLAGS[name].value
    return options


def lines_of_file(path: str, flag: str) -> Iterator[str]:
    """Returns the lines of the file that a flag names."""
    from pipelines.text_files import read_lines

    require(to_path(path).is_file(), flag, "must be a file", repr(path))
    return read_lines(path, flag)


def define_memory_flag() -> None:
    """Defines --memory."""
    flags.DEFINE_string(
        "memory",
        None,
        "Translation memory (.tmx, .tsv, .jsonl, .po, .xliff). Sentences found in it, ignoring "
        "white space and placeholders, are not translated by the model.",
    )


def check_memory_flag() -> None:
    """Checks that --memory is a file of sentence pairs before a model is loaded."""
    from pipelines.pair_files import check_pair_file

    path = flags.FLAGS.memory
    if path is not None:
        check_pair_file(path, "memory")
        require(to_path(path).is_file(), "memory", "must be a file", repr(path))


def terms_of(path: str, flag: str) -> dict[str, str]:
    """Reads the terms in a file, {source phrase: target phrase}; `flag` names the file."""
    terms: dict[str, str] = {}
    for number, line in enumerate(lines_of_file(path, flag), start=1):
        source, *targets = map(str.strip, line.split("\t"))
        place = f"{path}:{number}"
        is_term = source and len(targets) == 1 and targets[0]
        rule = "must be a source phrase, a tab and a target phrase"
        require(is_term, None, rule, repr(line), place)
        rule = "must have a source phrase that no earlier line has"
        require(source not in terms, None, rule, repr(source), place)
        terms[source] = targets[0]
    return terms


def open_model_flags(fixed_in_export: tuple[str, ...] = ()):
    """Opens the model that the flags name, without TensorFlow, and checks the other model flags.

    Args:
        fixed_in_export: further program flags that an export with a built-in search does not take.

    Returns:
        A StoredModel; see keras_transformer.store.opening.
    """
    from keras_transformer.store.export import require_unset
    from keras_transformer.store.model_path import ModelPath
    from keras_transformer.store.opening import open_model

    values = flags.FLAGS
    names = [name for name in ("model_dir", "saved_model") if name in values]
    used = [name for name in names if values[name].value is not None]
    rule = "must be given, or --saved_model, but not both"
    require(len(used) == 1, "model_dir", rule, " and ".join(used) or "neither")
    (flag,) = used
    path = values[flag].value
    weights = {name: values[name].value for name in ("checkpoint", "adapter", "adapter_scale")}
    if flag == "saved_model":
        require_unset(weights)
        stored = open_model(ModelPath(path, argument=flag))
        rule = "must be an export; this is a model directory or a .keras file: --model_dir"
        require(stored.is_export, flag, rule, path)
    else:
        stored = open_model(ModelPath(path.split(","), **weights, argument=flag))
        rule = "must be a model directory or a .keras file; this is an export: --saved_model"
        require(not stored.is_export, flag, rule, path)
    stored.check_options(search_options())
    if stored.contains_search:
        present = [name for name in fixed_in_export if values[name].present]
        require_unset({name: values[name].value for name in present})
    return stored


def check_output_flag(name: str, inputs: tuple[str, ...] = ()) -> None:
    """Checks, before any slow work, that an output file is writable and not an input.

    Args:
        name: the flag of the output file; nothing is checked if it is not given or is -.
        inputs: the flags of other files that the program reads besides the model's.
    """
    from keras_transformer.output_files import STANDARD_STREAM, check_output

    path = flags.FLAGS[name].value
    if path in (None, STANDARD_STREAM):
        return
    read = {}
    for flag in [*inputs, *FILES_OF_LINES, "model_dir", "saved_model", "adapter"]:
        if flag in flags.FLAGS and flags.FLAGS[flag].value is not None:
            value = flags.FLAGS[flag].value
            read[f"--{flag}"] = [value, *value.split(",")]  # --model_dir may name several
    check_output(path, name, read)


def load_model(stored, **options: Any):
    """Loads a model.

    Args:
        stored: the model, from `open_model_flags`.
        options: search options that are not flags of `define_model_flags`.

    Returns:
        A Translator; see keras_transformer.load.
    """
    logging.info("loading the model ...")  # importing TensorFlow takes seconds
    from keras_transformer.loading import translator_of
    from keras_transformer.search.streams import share_cores

    share_cores()
    translator = translator_of(stored, {**search_options(), **options})
    _warn_of_short_training(translator.card)
    return translator


def _warn_of_short_training(card) -> None:
    """Warns if a model's training ended inside its warm-up, before it translates well."""
    training, checkpoint = card.description.training, card.checkpoint
    if training is None or checkpoint is None or card.description.base is not None:
        return
    steps = checkpoint.step or 0  # None if unknown
    if not training.decays_to_zero and 0 < steps < training.warmup_steps:
        message = "this model's training ended at step %d, inside its warm-up of %d steps, so it "
        message += "may translate badly: train it longer, or with fewer warmup_steps"
        logging.warning(message, steps, training.warmup_steps)


def load_model_with_memory(stored, **options: Any):
    """Loads a model, and the --memory file; see `load_model`."""
    from keras_transformer.languages import ModelLanguages
    from pipelines.pair_files import read_memory

    translator = load_model(stored, **options)
    path = flags.FLAGS.memory
    if path is not None:
        task = translator.card.description.task
        require(task == "translation", "memory", "must be used with a translation model", task)
        languages = translator.card.languages or ModelLanguages((), ())
        memory = read_memory(path, "memory", languages.directions, languages.has_codes)
        translator = translator.with_memory(memory)
    return translator


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Suppresses what libraries write to stderr at startup, unless --verbosity=1.

    quiet_tensorflow.py does so for TensorFlow; warning and log filters do so for the others.
    """
    if logging.get_verbosity() >= logging.DEBUG:
        set_defaults(ALL_LINES)
        yield
        return
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        yield


def set_defaults(environment: dict[str, str]) -> None:
    """Sets environment variables that are not set yet."""
    for name, value in environment.items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def remote_errors() -> Iterator[None]:
    """Turns TensorFlow's errors for remote files that it reads and writes itself into OSErrors."""
    try:
        yield
    except Exception as error:
        tf = sys.modules.get("tensorflow")
        if tf is None or not isinstance(error, tf.errors.OpError) or "://" not in str(error):
            raise
        raise OSError(reason(error)) from None


def _is_shown(record: standard_logging.LogRecord) -> bool:
    """Whether a log record is this project's, an error, or requested."""
    verbose = logging.get_verbosity() >= logging.DEBUG
    is_error = record.levelno >= standard_logging.ERROR
    return verbose or is_error or record.pathname.startswith(OWN_FOLDERS)


class _Formatter(logging.PythonFormatter):
    """Log lines as "12:34:56 message"; with --verbosity=1, those of absl with files and threads."""

    def format(self, record: standard_logging.LogRecord) -> str:
        if logging.get_verbosity() >= logging.DEBUG:
            return super().format(record)
        is_information = record.levelno <= standard_logging.INFO
        level = "" if is_information else f"{record.levelname.lower()}: "
        message = standard_logging.Formatter.format(self, record)
        return f"{self.formatTime(record, '%H:%M:%S')} {level}{message}"


def _parse_flags(arguments: list[str], is_relevant: Callable[[str], bool]) -> list[str]:
    """Parses this program's flags; returns the remaining arguments."""
    values = flags.FLAGS
    values["verbosity"].help = VERBOSITY
    values.register_key_flag_for_module(arguments[0], values["verbosity"])  # --help lists it
    program, *typed = arguments
    if FULL_HELP in typed:
        print(full_help(program))
        sys.exit(0)
    if any(argument in HELP for argument in typed):
        with contextlib.suppress(flags.Error):  # flags that would be wrong or are missing
            values([program, *(argument for argument in typed if argument not in HELP)])
        print(short_help(program, is_relevant))
        sys.exit(0)
    try:
        left_over = values([program, *_with_flag_files(typed)])
        _check_numbers()
        _check_repeated(typed)
    except flags.Error as error:
        missing = r"flag --\w+=None: Flag (--\w+) must have a value other than None"
        lines = [line.removesuffix(".") for line in str(error).splitlines()]
        message = re.sub(missing, r"\1 must be given", "; ".join(lines))
        _fail(f"{message} (--help lists the flags)")
    except InputError as error:
        _fail(with_flag(error))
    except RecursionError:  # absl, which looks for flags similar to an unknown one
        _fail("flags must be those of this program (--help). Received: one with an overlong name")
    except SystemExit:  # of absl, after --help
        sys.exit(0)
    return left_over


def _with_flag_files(arguments: list[str]) -> list[str]:
    """Returns command-line arguments, with each --flagfile=FILE replaced by the file's lines.

    Raises:
        flags.Error: if a file cannot be opened.
        InputError: if a file or an argument is not UTF-8 text.
    """
    try:
        expanded = flags.FLAGS.read_flags_from_files(arguments, force_gnu=False)
    except ValueError as error:  # bytes that are not text, or a name with NUL
        rule = "must be a text file with one flag per line"
        raise InputError("--flagfile", rule, reason(error)) from None
    for argument in expanded:
        name = argument.lstrip("-").partition("=")[0]
        is_utf8 = not any("\ud800" <= character <= "\udfff" for character in argument)
        rule = "must be UTF-8 text without NUL, including file names"
        require(is_utf8 and "\0" not in argument, name, rule, argument)
    return expanded


def _check_repeated(typed: list[str]) -> None:
    """Raises InputError for a list given twice: absl would ignore the first one."""
    names = collections.Counter(argument.lstrip("-").partition("=")[0] for argument in typed)
    for name, count in names.items():
        is_list = name in flags.FLAGS and isinstance(flags.FLAGS[name].parser, flags.BaseListParser)
        rule = "must be given once, with its values separated by commas"
        require(count == 1 or not is_list, name, rule, f"{count} times")


def _check_numbers() -> None:
    """Raises InputError for NaN and infinite numbers, which absl accepts."""
    for name in flags.FLAGS:
        value = flags.FLAGS[name].value
        is_finite = not isinstance(value, float) or math.isfinite(value)
        require(is_finite, name, "must be finite", value)


def _run(main: Callable[[], dict[str, Any] | None], arguments: list[str]) -> None:
    if len(arguments) > 1:
        _fail(f"every argument must be a flag (--name=value). Received: {arguments[1]!r}")
    try:
        with quiet_libraries(), remote_errors():
            result = main()
    except InputError as error:
        _fail(with_flag(error))
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in TENSORFLOW_PACKAGES:
            raise
        rule = "must be installed, except for models in CTranslate2's format"
        _fail(str(InputError("TensorFlow", rule, f"not installed ({reason(error)})")))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if result is not None:
        print(json.dumps(result, ensure_ascii=False), flush=True)


def with_flag(error: InputError) -> str:
    """Returns an error's message, naming the flag that the user typed.

    The library names the argument: "beam_size must be at least 1". The user of a program typed
    --beam_size, or a setting in --config: "--config dropout must be ...". Arguments that are not
    flags of this program, and fields of files, keep their names.
    """
    if error.argument is None or error.place is not None:
        return str(error)
    name = re.split(r"[\[. ]", error.argument)[0]
    if _is_setting(name):
        return error.message(f"--config {error.argument}")
    return error.message(f"--{error.argument}" if name in flags.FLAGS else error.argument)


def _is_setting(name: str) -> bool:
    """Whether a name is a setting that was given in --config, or can only be given there."""
    from keras_transformer.config import TrainingConfig, TransformerConfig

    if "config" not in flags.FLAGS:
        return False
    in_config = {setting.partition("=")[0] for setting in flags.FLAGS["config"].value}
    fields = [*dataclasses.fields(TransformerConfig), *dataclasses.fields(TrainingConfig)]
    without_flag = {field.name for field in fields if field.name not in flags.FLAGS}
    return name in in_config | without_flag


def _open_standard_streams() -> None:
    """Reopens closed ones, whose descriptors the next opened files would otherwise get."""
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        _fail("stdout must be open for the result. Received: a closed stream")


def _give_up_stdout() -> None:
    """Discards stdout's buffer, whose flush would fail again at exit."""
    with contextlib.suppress(OSError):  # stdout may not be a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> None:
    print(f"error: {_one_line(message)}", file=sys.stderr)
    sys.exit(1)


def _of_system(error: OSError) -> str:
    """Returns the message for a system error: "No space left on device: FILE (advice)"."""
    message = error.strerror or reason(error)
    if error.strerror and error.filename is not None:
        message += f": {error.filename}"
    notes = "; ".join(getattr(error, "__notes__", []))
    return f"{message} ({notes})" if notes else message


def _one_line(message: str) -> str:
    """Returns a message for the terminal: one line, no control characters, limited length.

    The middle is cut, as the cause of an error is at the beginning or at the end.
    """
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    if len(shown) <= LONGEST_MESSAGE:
        return shown
    half = LONGEST_MESSAGE // 2
    return f"{shown[:half]} ... {shown[-half:]}"
