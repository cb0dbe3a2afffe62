"""Imports a model as a model directory: a Marian model (OPUS-MT), a .keras file or an export.

A Marian model is one of the Hugging Face hub, which is downloaded, or a directory in Hugging Face's
format or in Marian's own: see keras_transformer/kit/exchange/marian.py. M2M-100, NLLB-200 and
SMaLL-100 are imported in the same way. Only weights are read, no code. The other programs use the
result like a model directory written by bin/train.py.
"""

from pathlib import Path

from command.run import run

from absl import flags

from keras_transformer.core.training.model_directory import require_new
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import to_path

FLAGS = flags.FLAGS
flags.DEFINE_enum("format", "marian", ["marian", "keras", "saved_model"], "Format of --path.")
flags.DEFINE_string(
    "path",
    None,
    "Directory of a Marian model, a .keras file next to its vocabulary, or an export.",
)
flags.DEFINE_string(
    "hub",
    None,
    "Marian model of the Hugging Face hub, in place of --path, such as Helsinki-NLP/opus-mt-de-en.",
)
flags.DEFINE_string(
    "revision", None, "Branch, tag or commit of --hub. Default: the newest version."
)
flags.DEFINE_string("model_dir", None, "New directory for the model.", required=True)
flags.DEFINE_list(
    "languages",
    None,
    "Source and target language of a Marian model, such as de,en; only the source language if the "
    "vocabulary has codes for the targets. Documents are split into sentences by the rules of the "
    "source language. Default: the languages in Hugging Face's files, if they have them. For "
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
    local = isinstance(path, Path) or FLAGS.format != "marian"
    require(local, "path", "must be a local folder with --format=marian", path)
    require(path.exists(), "path", "must exist", path)
    from keras_transformer.use.store.decoding import ChosenDecoding
    from keras_transformer.use.store.directory import ModelDirectory, write_model_directory
    from keras_transformer.use.store.export import Export, SavedModel
    from keras_transformer.use.store.keras_file import KerasFile
    from keras_transformer.use.store.model_path import ModelPath
    from keras_transformer.use.store.opening import kind_of, open_model

    if FLAGS.format == "marian":
        formats = {KerasFile: "keras", Export: "saved_model", ModelDirectory: "marian"}
        format = formats[kind_of(path)]
        require(format == "marian", "format", f"must be {format} for --path={path}", FLAGS.format)
        from keras_transformer.kit.exchange.marian import import_marian

        return import_marian(path, model_dir, FLAGS.languages)

    stored = open_model(ModelPath(path))
    kind = {"saved_model": SavedModel, "keras": KerasFile}[FLAGS.format]
    rule = f"must have the format {FLAGS.format}"
    require(isinstance(stored, kind), "path", rule, path)
    trained = stored.restore()
    description, decoding = trained.card.description, trained.card.decoding
    return write_model_directory(
        model_dir,
        trained.model,
        trained.vocabularies,
        max_length=decoding.max_source_length,
        task=description.task,
        task_options=description.task_options,
        languages=description.languages,
        chosen=ChosenDecoding.of(decoding) if stored.is_export else None,
    )


def _check_source():
    """Checks that one model is named, and the flags that only belong to the hub or to Marian."""
    named = [name for name in ("path", "hub") if FLAGS[name].value is not None]
    rule = "must be given, or --hub, but not both"
    require(len(named) == 1, "path", rule, " and ".join(named) or "neither")
    is_from_hub = named == ["hub"]
    rule = "must only be given with --hub"
    require(is_from_hub or FLAGS.revision is None, "revision", rule, FLAGS.revision)
    rule = "must be marian with --hub"
    require(not is_from_hub or FLAGS.format == "marian", "format", rule, FLAGS.format)
    is_for_marian = FLAGS.languages is None or FLAGS.format == "marian"
    rule = "must only be given with --format=marian"
    require(is_for_marian, "languages", rule, FLAGS.languages)


if __name__ == "__main__":
    run(main)
