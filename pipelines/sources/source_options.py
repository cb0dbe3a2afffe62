"""The table of sources that a data set can be prepared from, and their options.

To add a source, write its file, with a dataclass of its options, and add a row to SOURCES. The
options then are arguments of keras_transformer.prepare and flags of the program.
"""

from collections.abc import Mapping
from typing import Any

from keras_transformer.support.errors import require
from keras_transformer.support.fields import options_of
from pipelines.sources.file_options import FileOptions
from pipelines.sources.source import Source
from pipelines.sources.tfds_source import TfdsOptions
from pipelines.sources.treebank import TreebankOptions

# Each value is a dataclass, whose fields made with support/fields.py's `option` are the options.
# Its method `source()` makes the source. If the key ends in ":NAME", the
# dataclass also has a field `name`.
SOURCES = {
    "files": FileOptions,
    "treebank": TreebankOptions,
    "tfds:NAME": TfdsOptions,
}


# The options of all sources; some have the same.
OPTION_NAMES = list(
    dict.fromkeys(name for options in SOURCES.values() for name in options_of(options))
)


def make_source(dataset: str, values: Mapping[str, Any]) -> Source:
    """Makes a source of sentence pairs.

    Args:
        dataset: a key of SOURCES, with the name of a data set in place of NAME.
        values: option -> value, for some of OPTION_NAMES.

    Raises:
        InputError: for an unknown `dataset`, an option of another source, and an invalid value.
    """
    kind, colon, name = dataset.partition(":") if isinstance(dataset, str) else ("", "", "")
    key = f"{kind}:NAME" if colon else kind
    require(key in SOURCES, "dataset", f"must be one of {', '.join(SOURCES)}", dataset)
    options = SOURCES[key]
    for option, value in values.items():
        rule = f"must not be given with dataset={dataset}"
        require(option in options_of(options), option, rule, value)
    named = {"name": name} if colon else {}
    return options(**named, **values).source()
