"""Exports a trained model as a SavedModel that takes text, in CTranslate2's format, or as ONNX.

A SavedModel takes text and returns text, with the vocabulary and the search inside. CTranslate2 and
the ONNX graphs take and return subwords; the vocabulary lies beside the model, and their callers
set the search up.
"""

from command import (  # isort: skip  (first: it makes the checkout importable)
    check_model_dir_flag,
    define_model_flags,
    given_search_flags,
    run,
    search_options,
)

import datetime

from absl import flags

from keras_transformer.errors import require

FLAGS = flags.FLAGS
define_model_flags(takes_exports=False)
flags.DEFINE_string("export_dir", None, "New directory for the export.", required=True)
FORMATS = ["saved_model", "ctranslate2", "onnx"]
flags.DEFINE_enum("format", "saved_model", FORMATS, "Format to write.")
flags.DEFINE_enum(
    "weights", "float32", ["float32", "bfloat16", "int8"], "Type of the stored weights."
)
flags.DEFINE_bool("constraints", False, "Add the signature constrain, which requires phrases.")
SIGNATURES = "Signatures to write; fewer need less memory when loaded. The default is all."
flags.DEFINE_list("signatures", None, SIGNATURES)
flags.DEFINE_string("date", None, "Date in the model card, YYYY-MM-DD; the default is today.")
flags.DEFINE_bool("overwrite", False, "Replace an earlier export in --export_dir.")


def main():
    if FLAGS.format != "saved_model":
        refuse_flags_of_saved_model()
    date = FLAGS.date or datetime.date.today().isoformat()
    require(is_date(date), "date", "must be a date as YYYY-MM-DD", repr(date))
    model_dirs = FLAGS.model_dir.split(",")
    several = len(model_dirs) > 1
    rule = "must be one model, no ensemble, for --weights=int8 or a format other than saved_model"
    alone = FLAGS.weights == "int8" or FLAGS.format != "saved_model"
    require(not (several and alone), "model_dir", rule, FLAGS.model_dir)
    check_model_dir_flag()

    from keras_transformer.export.ctranslate2 import export_ctranslate2, load_ctranslate2
    from keras_transformer.export.directory import check_export_dir
    from keras_transformer.export.onnx import export_onnx, require_onnx
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.loading import decoding_config, restore

    check_export_dir(FLAGS.export_dir, FLAGS.overwrite)
    if FLAGS.format == "ctranslate2":
        load_ctranslate2()  # says that it is not installed before weights are read
    elif FLAGS.format == "onnx":
        require_onnx()
    trained = restore(model_dirs, FLAGS.checkpoint, FLAGS.adapter, FLAGS.adapter_scale)
    options = decoding_config(trained, **search_options())
    card = trained.card(options, date=date, weights=FLAGS.weights)
    if FLAGS.format == "ctranslate2":
        result = export_ctranslate2(
            trained.model,
            trained.vocabularies,
            FLAGS.export_dir,
            card,
            overwrite=FLAGS.overwrite,
        )
    elif FLAGS.format == "onnx":
        result = export_onnx(
            trained.model,
            trained.vocabularies,
            FLAGS.export_dir,
            card,
            overwrite=FLAGS.overwrite,
        )
    else:
        result = export_saved_model(
            trained.models,
            trained.vocabularies,
            FLAGS.export_dir,
            card,
            overwrite=FLAGS.overwrite,
            constraints=FLAGS.constraints,
            signatures=FLAGS.signatures,
        )
    return {**result, **trained.facts}


def refuse_flags_of_saved_model():
    """Refuses what the caller of another engine decides, as its files do not."""
    names = [*given_search_flags(), "constraints", "signatures"]
    if FLAGS.format == "ctranslate2":
        names.append("weights")
    for name in names:
        rule = (
            "must be given with --format=saved_model only; otherwise, the engine's caller chooses"
        )
        require(not FLAGS[name].present, name, rule, FLAGS[name].value)
    if FLAGS.format == "onnx":
        rule = "must be float32 or int8 with --format=onnx"
        require(FLAGS.weights != "bfloat16", "weights", rule, FLAGS.weights)


def is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


if __name__ == "__main__":
    run(main)
