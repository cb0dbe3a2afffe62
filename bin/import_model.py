"""Imports a model of another toolkit, a .keras file or an export as a model directory.

By default, the files show the format: keras_transformer/kit/exchange/formats.py lists those of
other toolkits. A model of the Hugging Face hub is downloaded. Only weights are read, no code. The
other programs use the result like a model directory written by bin/train.py.
"""

from command.run import run

from absl import flags

from keras_transformer.core.training.model_directory import require_new
from keras_transformer.kit.exchange.formats import READABLE, format_at
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import to_path

FLAGS = flags.FLAGS
flags.DEFINE_enum(
    "format",
    "auto",
    ["auto", *READABLE, "keras", "saved_model"],
    "Format of --path; auto: what its files show. marian: also Hugging Face's.",
)
flags.DEFINE_string(
    "path",
    None,
    "Directory or file of a model, a .keras file next to its vocabulary, or an export.",
)
flags.DEFINE_string(
    "hub",
    None,
    "Model of the Hugging Face hub, in place of --path, such as Helsinki-NLP/opus-mt-de-en.",
)
flags.DEFINE_string(
    "revision", None, "Branch, tag or commit of --hub. Default: the newest version."
)
flags.DEFINE_string("model_dir", None, "New directory for the model.", required=True)
flags.DEFINE_list(
    "languages",
    None,
    "Source and target language of another toolkit's model, such as de,en; only the source "
    "language if the vocabulary has codes for the targets. Documents are split into sentences by "
    "the rules of the source language. Default: the languages in the files, if they have them. For "
    "M2M-100 and NLLB-200: the source language, or source and target, to keep; all by default.",
)


def main():
    _check_source()
    model_dir = to_path(FLAGS.model_dir)
    require_new(FLAGS.model_dir)
    if FLAGS.hub is not None:
        from keras_transformer.kit.exchange.hub import import_from_hub

        return import_from_hub(FLAGS.hub, model_dir, FLAGS.languages, FLAGS.revision)

    path = to_path(FLAGS.path)
    require(path.exists(), "path", "must exist", path)
    format = format_at(path)
    names = ("auto", "marian", format) if format == "hugging_face" else ("auto", format)
    require(FLAGS.format in names, "format", f"must be {format} for --path={path}", FLAGS.format)
    if format in READABLE:
        from keras_transformer.kit.exchange.importing import import_model

        return import_model(path, model_dir, FLAGS.languages)

    from keras_transformer.kit.exchange.importing import import_own

    rule = "must only be given for a model of another toolkit"
    require(FLAGS.languages is None, "languages", rule, FLAGS.languages)
    return import_own(path, model_dir)


def _check_source():
    """Checks that one model is named, and the flags that only belong to the hub."""
    named = [name for name in ("path", "hub") if FLAGS[name].value is not None]
    rule = "must be given, or --hub, but not both"
    require(len(named) == 1, "path", rule, " and ".join(named) or "neither")
    is_from_hub = named == ["hub"]
    rule = "must only be given with --hub"
    require(is_from_hub or FLAGS.revision is None, "revision", rule, FLAGS.revision)
    rule = "must be auto with --hub"
    is_free = FLAGS.format in ("auto", "marian")
    require(not is_from_hub or is_free, "format", rule, FLAGS.format)


if __name__ == "__main__":
    run(main)
