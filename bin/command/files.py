"""Files that flags name: lines, terms, and the files that a program writes."""

from collections.abc import Iterator

from absl import flags

from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import to_path

FILES_OF_LINES = ("forbidden_phrases",)  # search options whose flag names a file


def lines_of_file(path: str, flag: str) -> Iterator[str]:
    """Returns the lines of the file that a flag names."""
    from pipelines.sources.text_files import read_lines

    require(to_path(path).is_file(), flag, "must be a file", repr(path))
    return read_lines(path, flag)


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


def check_output_flag(name: str, inputs: tuple[str, ...] = ()) -> None:
    """Checks, before any slow work, that an output file is writable and not an input.

    Args:
        name: the flag of the output file; nothing is checked if it is not given or is -.
        inputs: the flags of other files that the program reads besides the model's.
    """
    from keras_transformer.support.output_files import STANDARD_STREAM, check_output

    path = flags.FLAGS[name].value
    if path in (None, STANDARD_STREAM):
        return
    read = {}
    for flag in [*inputs, *FILES_OF_LINES, "model_dir", "saved_model", "adapter"]:
        if flag in flags.FLAGS and flags.FLAGS[flag].value is not None:
            value = flags.FLAGS[flag].value
            read[f"--{flag}"] = [value, *value.split(",")]  # --model_dir may name several
    check_output(path, name, read)
