"""Prints Tables 1 to 4 of the paper beside what this project computes and has measured.

    python bin/paper_tables.py
    python bin/paper_tables.py --table=3 --model_dirs=runs/sweep,runs/multi30k/model
    python bin/paper_tables.py --json

Without --model_dirs it shows the paper's figures, numbers of parameters and operations, and the
results in --measured, which is keras_transformer/paper/measured.json by default. Rows without a
result say "not run here". The commands behind each table are printed below it.
"""

from command import run  # isort: skip  (first: it makes the checkout importable)

from pathlib import Path
from typing import Any

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_list("table", "1,2,3,4", "The tables to print: 1, 2, 3, 4.")
flags.DEFINE_list("model_dirs", [], "Directories of trained models, or folders of these.")
flags.DEFINE_string("layers", None, "Output of benchmarks/layers.py; by default paper/layers.json.")
flags.DEFINE_string("measured", None, "A file of bin/sweep.py (table.json) or of --write_measured.")
flags.DEFINE_string("write_measured", None, "File for the results of --measured and --model_dirs.")


flags.DEFINE_bool("json", False, "Print the tables as one line of JSON in place of text.")


def main():
    from keras_transformer.errors import require
    from keras_transformer.paper import tables as paper_tables
    from keras_transformer.paper.trained_rows import (
        find_model_dirs,
        read_measured,
        trained_row,
    )

    kept = Path(paper_tables.__file__).parent  # what was measured is installed with the library
    for name in FLAGS.table or [""]:
        require(name in ("1", "2", "3", "4"), "--table must be of 1, 2, 3, 4", repr(name))
    measured = FLAGS.measured or kept / "measured.json"
    trained = [trained_row(path) for path in find_model_dirs(FLAGS.model_dirs)]
    found = {row["model_dir"] for row in trained}
    trained += [row for row in read_measured(measured) if row["model_dir"] not in found]
    layers = paper_tables.read_layers(FLAGS.layers or kept / "layers.json")
    if FLAGS.write_measured:
        write_measured(trained)
    makers = {
        "1": lambda: paper_tables.table_1(layers),
        "2": lambda: paper_tables.table_2(trained),
        "3": lambda: paper_tables.table_3(trained),
        "4": lambda: paper_tables.table_4(trained),
    }
    tables = {name: makers[name]() for name in FLAGS.table}
    if FLAGS.json:
        return {f"table{name}": data for name, (data, _) in tables.items()}
    for name, (_, text) in tables.items():
        print(f"Table {name}\n\n{text}\n")
    return None


def write_measured(trained: list[dict[str, Any]]) -> None:
    """Writes rows to the file that --write_measured names."""
    from keras_transformer.errors import InputError
    from keras_transformer.files import write_json

    try:
        write_json(FLAGS.write_measured, trained)
    except OSError as error:
        rule = "--write_measured must be a file that can be written"
        raise InputError(f"{rule}. Received: {FLAGS.write_measured} ({error.strerror})") from None


if __name__ == "__main__":
    run(main)
