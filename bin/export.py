"""Exports a trained model for use elsewhere.

saved_model   a SavedModel that maps text to text, with the vocabulary and the search inside
ctranslate2   a directory for CTranslate2; `translate` and `serve` can use it without TensorFlow
argos         a package for each direction, for Argos Translate and LibreTranslate
onnx          the encoder and one decoder step: ids in, log probabilities out
web           a page that translates in the browser; any static file server can serve it
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

FORMATS = ("saved_model", "ctranslate2", "argos", "onnx", "web")
WITH_SEARCH = ("saved_model", "ctranslate2")  # formats that store the search options
# Flags that only some formats take; the search flags go with WITH_SEARCH.
FORMATS_OF = {
    "constraints": ("saved_model",),
    "signatures": ("saved_model",),
    "directions": ("argos",),
    "runtime": ("web",),
}
# Search options that the page supports, too.
OF_THE_PAGE = ("beam_size", "alpha", "early_stopping")

FLAGS = flags.FLAGS
define_model_flags(takes_exports=False)
flags.DEFINE_string("export_dir", None, "New directory for the export.", required=True)
flags.DEFINE_enum("format", "saved_model", FORMATS, "Format to write.")
flags.DEFINE_enum(
    "weights", "float32", ["float32", "bfloat16", "int8"], "Type of the stored weights."
)
flags.DEFINE_bool("constraints", False, "Add the signature constrain_ids, for required phrases.")
SIGNATURES = "Signatures to write; fewer need less memory when loaded. All by default."
flags.DEFINE_list("signatures", None, SIGNATURES)
DIRECTIONS = "--format=argos: directions to package, such as en-de,en-cs. All by default."
flags.DEFINE_list("directions", None, DIRECTIONS)
RUNTIME = (
    "--format=web: the dist folder of the npm package onnxruntime-web; two of its files are "
    "copied. "
    "By default the page fetches them from cdn.jsdelivr.net."
)
flags.DEFINE_string("runtime", None, RUNTIME)
flags.DEFINE_string("date", None, "Date in the model card, YYYY-MM-DD; today by default.")
flags.DEFINE_bool("overwrite", False, "Replace an earlier export in --export_dir.")


def main():
    check_flags_of_format()
    date = FLAGS.date or datetime.date.today().isoformat()
    require(is_date(date), "date", "must be a date as YYYY-MM-DD", repr(date))
    model_dirs = FLAGS.model_dir.split(",")
    is_alone = FLAGS.weights == "int8" or FLAGS.format != "saved_model"
    rule = f"must be a single model for --format={FLAGS.format} --weights={FLAGS.weights}"
    require(not (len(model_dirs) > 1 and is_alone), "model_dir", rule, FLAGS.model_dir)
    check_model_dir_flag()

    from keras_transformer.export.directory import check_export_dir
    from keras_transformer.restoring import decoding_config, restore

    check_export_dir(FLAGS.export_dir, FLAGS.overwrite)
    check_packages()
    if FLAGS.format == "web":
        from keras_transformer.export.web.page import runtime_files

        runtime_files(FLAGS.runtime)  # reports missing packages before weights are read
    trained = restore(model_dirs, FLAGS.checkpoint, FLAGS.adapter, FLAGS.adapter_scale)
    options = decoding_config(trained, **search_options())
    card = trained.card(options, date=date, weights=FLAGS.weights)
    return {**write(trained, card), **trained.facts}


def check_flags_of_format():
    """Rejects flags that belong to other formats."""
    formats_of = FORMATS_OF | dict.fromkeys(given_search_flags(), WITH_SEARCH)
    formats_of |= dict.fromkeys(OF_THE_PAGE, (*WITH_SEARCH, "web"))
    for name, formats in formats_of.items():
        rule = f"must only be given with --format={' or '.join(formats)}"
        is_free = FLAGS.format in formats or not FLAGS[name].present
        require(is_free, name, rule, FLAGS[name].value)


def check_packages():
    """Reports packages that are not installed, before weights are read."""
    if FLAGS.format in ("ctranslate2", "argos"):
        from keras_transformer.search.ctranslate2_engine import load_ctranslate2

        load_ctranslate2()
    elif FLAGS.format in ("onnx", "web"):
        from keras_transformer.export.onnx import load_onnx

        load_onnx()


def write(trained, card):
    """Writes the export; returns its description."""
    to = {"export_dir": FLAGS.export_dir, "card": card, "overwrite": FLAGS.overwrite}
    if FLAGS.format == "ctranslate2":
        from keras_transformer.export.ctranslate2 import export_ctranslate2

        return export_ctranslate2(trained.model, trained.vocabularies, **to)
    if FLAGS.format == "argos":
        from keras_transformer.export.argos import export_argos

        directions = FLAGS.directions
        return export_argos(trained.model, trained.vocabularies, **to, directions=directions)
    if FLAGS.format == "onnx":
        from keras_transformer.export.onnx import export_onnx

        return export_onnx(trained.model, trained.vocabularies, **to)
    if FLAGS.format == "web":
        from keras_transformer.export.web.page import export_web, runtime_files

        runtime = runtime_files(FLAGS.runtime)
        return export_web(trained.model, trained.vocabularies, **to, runtime=runtime)
    from keras_transformer.export.saved_model import export_saved_model

    own = {"constraints": FLAGS.constraints, "signatures": FLAGS.signatures}
    return export_saved_model(trained.models, trained.vocabularies, **to, **own)


def is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


if __name__ == "__main__":
    run(main)
