"""Prints Tables 1 to 4 of the paper next to this project's own figures.

    python bin/paper_tables.py
    python bin/paper_tables.py --table=3 --model_dirs=runs/sweep,runs/multi30k/model
    python bin/paper_tables.py --json

Without --model_dirs it shows the paper's figures, the numbers of parameters and operations, and the
results in --measured, by default keras_transformer/kit/paper/measured.json. Rows without a result
say "not run here". The commands that produce each table are printed below it.
"""

from pathlib import Path

from command.files import check_output_flag
from command.run import run

from absl import flags

FLAGS = flags.FLAGS
TABLES = ("1", "2", "3", "4")
flags.DEFINE_list("table", "1,2,3,4", "Tables to print: 1, 2, 3, 4.")
flags.DEFINE_list("model_dirs", [], "Directories of trained models, or folders that contain them.")
flags.DEFINE_string("measured", None, "File from bin/sweep.py (table.json) or --write_measured.")
flags.DEFINE_string(
    "write_measured", None, "Output file for the results of --measured and --model_dirs."
)
flags.DEFINE_bool("json", False, "Print the tables as one line of JSON instead of text.")


def main():
    from keras_transformer.kit.paper.trained_rows import find_model_dirs
    from keras_transformer.support.errors import require
    from keras_transformer.support.files.json_files import write_json

    for name in FLAGS.table or [""]:
        require(name in TABLES, "table", "must be among 1, 2, 3, 4", repr(name))
    check_output_flag("write_measured")
    if FLAGS.write_measured:
        folder = Path(FLAGS.write_measured).parent.resolve()
        inside = folder in [Path(path).resolve() for path in find_model_dirs(FLAGS.model_dirs)]
        rule = "must be a file outside the model directories"
        require(not inside, "write_measured", rule, FLAGS.write_measured)
    trained = trained_rows()
    if FLAGS.write_measured:
        write_json(FLAGS.write_measured, trained)
    tables = {name: make_table(name, trained) for name in FLAGS.table}
    if FLAGS.json:
        return {f"table{name}": table.data for name, table in tables.items()}
    for name, table in tables.items():
        print(f"Table {name}\n\n{table.text}\n")
    return None


def trained_rows():
    """Returns the rows of --model_dirs, then those of --measured for other models."""
    from keras_transformer.kit.paper.trained_rows import find_model_dirs, read_measured, trained_row

    rows = [trained_row(path) for path in find_model_dirs(FLAGS.model_dirs)]
    known = {row["model_dir"] for row in rows}
    for row in read_measured(FLAGS.measured or measured_results()):
        if row["model_dir"] not in known:
            rows.append(row)
    return rows


def measured_results():
    """Returns the path of the results installed with the library."""
    from keras_transformer.kit import paper

    return Path(paper.__file__).with_name("measured.json")


def make_table(name, trained):
    from keras_transformer.kit.paper.tables import table_1, table_2, table_3, table_4

    if name == "1":
        return table_1()
    makers = {"2": table_2, "3": table_3, "4": table_4}
    return makers[name](trained)


if __name__ == "__main__":
    run(main)
