"""The texts of --help and --helpfull."""

import re
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from absl import flags

HELP_WIDTH = 80
ADVANCED: set[str] = set()  # flags that only --helpfull lists


def short_help(program: str, is_relevant: Callable[[str], bool]) -> str:
    """Returns the text of --help: what most people need, given the flags typed so far."""
    groups = _flags_by_heading(program)
    shown = {}
    for heading, group in groups.items():
        common = [flag for flag in group if flag.name not in ADVANCED]
        if common and is_relevant(heading):
            shown[heading] = common
    hidden = sum(map(len, groups.values())) - sum(map(len, shown.values()))
    more = f"{hidden} more flags, and those" if hidden else "also the flags"
    return "\n\n".join(
        [_docstring(), *_paragraphs(shown), f"--helpfull lists {more} of libraries."]
    )


def full_help(program: str) -> str:
    """Returns the text of --helpfull: all flags of the program, and those of absl."""
    groups = _flags_by_heading(program) | _library_flags()
    return "\n\n".join([_docstring(), *_paragraphs(groups)])


def _docstring() -> str:
    return (sys.modules["__main__"].__doc__ or "").strip("\n")


def _flags_by_heading(program: str) -> dict[str, list[flags.Flag]]:
    """Returns the program's flags under their headings."""
    groups: dict[str, list[flags.Flag]] = {}
    for flag in flags.FLAGS.get_key_flags_for_module(program):
        module = flags.FLAGS.find_module_defining_flag(flag.name)
        heading = "flags" if module in (program, "absl.logging") else module
        groups.setdefault(heading, []).append(flag)
    return groups


def _library_flags() -> dict[str, list[flags.Flag]]:
    """Returns the flags of absl, by module."""
    by_module = flags.FLAGS.flags_by_module_dict()
    return {name: by_module[name] for name in sorted(by_module) if name.startswith("absl.")}


def _paragraphs(groups: dict[str, list[flags.Flag]]) -> list[str]:
    paragraphs = []
    for heading, group in groups.items():
        lines = [_flag_help(flag) for flag in sorted(group, key=lambda flag: flag.name)]
        paragraphs.append("\n".join([f"{heading}:", *lines]))
    return paragraphs


def _flag_help(flag: flags.Flag) -> str:
    """Returns a flag's name, help text, kind and default, as wrapped lines."""
    name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"
    if flag.short_name:
        name = f"-{flag.short_name},{name}"
    text = re.sub(r"^<[^>]*>: ", "", flag.help or "")  # absl adds the choices
    notes = []
    choices = getattr(flag.parser, "enum_values", None)
    if choices:
        notes.append(f"one of {', '.join(choices)}")
    if isinstance(flag.parser, flags.BaseListParser):
        notes.append("separated by commas")
    if isinstance(flag, flags.MultiFlag):
        text = text.partition(";\n")[0]  # absl adds that it can be repeated
        notes.append("can be repeated")
    if flag.default not in (None, "", []) and flag.default is not False:
        notes.append(f"default: {_shown_default(flag.default)}")
    if notes:
        text += f" ({'; '.join(notes)})"
    return textwrap.fill(
        f"{name}: {text}",
        HELP_WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _shown_default(default: Any) -> str:
    if isinstance(default, list):
        return ",".join(map(str, default))
    if isinstance(default, float):
        return f"{default:g}"
    return "true" if default is True else str(default)
