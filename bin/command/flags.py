"""The flags of a program: defined by dataclasses of options, and checked when they are parsed."""

import collections
import contextlib
import dataclasses
import math
import re
import sys
import typing
from collections.abc import Callable
from typing import Any

from command.errors import fail, with_flag
from command.help import ADVANCED, full_help, short_help

from absl import flags

from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.support.fields import options_of, type_and_choices

flags.disclaim_key_flags()  # the flags defined here belong to the calling program

FLAG_OF_TYPE = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
VERBOSITY = (
    "0: progress and warnings; 1: also messages from TensorFlow and other libraries; -1: warnings "
    "only."
)
HELP = ("-h", "--help", "--helpshort")
FULL_HELP = "--helpfull"


def define_flags(config: type, heading: str) -> None:
    """Defines a flag for each option that a dataclass adds to its base classes' options.

    Args:
        config: a dataclass; its options are the fields made with
            keras_transformer.support.fields.option, which provide the flags' defaults, choices and
            help texts.
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
            optionally with None, or annotated with a rule from keras_transformer.support.fields.
        heading: shown above the flag by --help.
        options: further absl options, such as lower_bound.
    """
    kind, choices = type_and_choices(annotation)
    if choices:
        flags.DEFINE_enum(name, default, choices, help, module_name=heading, **options)
    else:
        FLAG_OF_TYPE.get(kind, flags.DEFINE_list)(
            name, default, help, module_name=heading, **options
        )
    flags.declare_key_flag(name)


def flag_values(config: type) -> dict[str, Any]:
    """Returns the values of the flags named after fields of the dataclass `config`."""
    names = [field.name for field in dataclasses.fields(config)]
    return {name: flags.FLAGS[name].value for name in names if name in flags.FLAGS}


def parse_flags(arguments: list[str], is_relevant: Callable[[str], bool]) -> list[str]:
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
        values.mark_as_parsed()  # also after such an error: `is_relevant` reads flags
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
        fail(f"{message} (--help lists the flags)")
    except InputError as error:
        fail(with_flag(error))
    except RecursionError:  # absl, which looks for flags similar to an unknown one
        fail("flags must be those of this program (--help). Received: one with an overlong name")
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
