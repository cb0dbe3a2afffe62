"""Exports a trained model for use elsewhere."""

import dataclasses
import datetime

from command.flags import define_flag
from command.model import define_model_flags, given_search_flags, open_model_flags, search_options
from command.run import run

from absl import flags, logging

from keras_transformer.kit.exchange.formats import (
    FORMATS,
    OPTIONS,
    WEIGHTS,
    check_models,
    check_options,
    check_package,
    check_weights,
    export,
    formats_with,
)
from keras_transformer.support.errors import require

DESCRIPTIONS = "\n".join(f"{name:<13} {kind.description}" for name, kind in FORMATS.items())
__doc__ = f"{__doc__}\n\n{DESCRIPTIONS}"  # for --help

FLAGS = flags.FLAGS
define_model_flags(takes_exports=False)
flags.DEFINE_string("export_dir", None, "New directory for the export.", required=True)
flags.DEFINE_enum("format", "saved_model", list(FORMATS), "Format to write.")
flags.DEFINE_enum("weights", "float32", WEIGHTS, "Type of the stored weights.")
for name, option in OPTIONS.items():
    help = f"--format={' or '.join(formats_with(name))}: {option.help}"
    define_flag(name, option.kind, None, help, "options of formats")
flags.DEFINE_string("date", None, "Date in the model card, YYYY-MM-DD; today by default.")
flags.DEFINE_bool("overwrite", False, "Replace an earlier export in --export_dir.")


def main():
    own = {name: FLAGS[name].value for name in OPTIONS if FLAGS[name].present}
    check_options(FLAGS.format, own | given_search_flags())
    check_weights(FLAGS.format, FLAGS.weights)
    date = FLAGS.date or datetime.date.today().isoformat()
    require(is_date(date), "date", "must be a date as YYYY-MM-DD", repr(date))
    check_models(FLAGS.format, FLAGS.weights, len(FLAGS.model_dir.split(",")), "model_dir")
    stored = open_model_flags()

    from keras_transformer.kit.exchange.directory import check_export_dir

    # Before weights are read, which takes time.
    check_export_dir(FLAGS.export_dir, FLAGS.overwrite)
    check_package(FLAGS.format)
    logging.info("loading the model ...")
    trained = stored.restore()
    card = trained.card.with_options(search_options())
    card = dataclasses.replace(card, date=date, weights=FLAGS.weights)
    written = export(
        FLAGS.format,
        trained.models,
        trained.vocabularies,
        FLAGS.export_dir,
        card,
        FLAGS.overwrite,
        **own,
    )
    return {**written, **card.which_weights}


def is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


if __name__ == "__main__":
    run(main)
