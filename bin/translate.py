"""Translates a file or a stream with a trained or exported model.

Line n of the output translates line n of the input, however many sentences it has. With
--format=wrapped, paragraphs span several lines, as in an e-mail. Other formats keep their
structure. With --one_sentence_per_line, --target_prefixes or output columns (--n_best, --scores,
--alignments, --token_scores, --matches), each line is passed to the model unchanged.

A parsing model (bin/prepare_data.py --dataset=treebank) writes a bracketed tree for each line, a
sentence with spaces between its words.

On a terminal, the translation of an office document or a book is a new file next to it, such as
letter.de.docx, unless --output names another. It never replaces a file.

The result is one JSON line on stdout, or on stderr if the translations go to stdout.
keras_transformer/kit/documents/lines.py describes the columns.
"""

import dataclasses
import json
import sys

from command.files import check_output_flag, terms_of
from command.flags import define_flags, flag_values
from command.model import (
    check_memory_flag,
    define_engine_flag,
    define_language_flags,
    define_memory_flag,
    define_model_flags,
    language_flags,
    load_model_with_memory,
    open_model_flags,
)
from command.run import run

from absl import flags

from keras_transformer.core.search.config import SamplingConfig
from keras_transformer.kit.documents.document_file import (
    DocumentConfig,
    path_beside,
    translate_file,
)
from keras_transformer.kit.documents.formats import FORMATS
from keras_transformer.kit.documents.lines import LinesConfig, translate_lines
from keras_transformer.support.fields import options_of

FLAGS = flags.FLAGS
define_model_flags()
define_engine_flag()
flags.DEFINE_string(
    "input",
    "-",
    "File to translate: UTF-8 text or another --format, possibly compressed (.gz, .zst). - is "
    "stdin.",
)
flags.DEFINE_string(
    "output",
    "-",
    "File to write; compressed if its name ends in .gz or .zst. - is stdout; on a terminal, it is "
    "only for text.",
)
define_language_flags(
    "Target language, such as de, if the model has several. Without it, each text must begin with "
    "a language code, such as >>de<<."
)
flags.DEFINE_bool(
    "one_sentence_per_line",
    False,
    "Translate each line as one sentence. Lines beyond the model's limit are truncated.",
)
flags.DEFINE_enum(
    "mbr",
    None,
    ["chrf", "bleu"],
    "Minimum Bayes risk: rank the --beam_size translations by their expected chrF or BLEU given "
    "the others. --scores then writes these.",
)
flags.DEFINE_string(
    "terminology",
    None,
    "Terminology file; each line is a source phrase, a tab and a target phrase. Translations of "
    "texts with the source phrase contain the target phrase.",
)
define_memory_flag()
flags.DEFINE_bool("sample", False, "Sample --beam_size translations instead of searching.")
define_flags(SamplingConfig, "sampling")
define_flags(LinesConfig, "columns of the output, for one sentence per line")
define_flags(DocumentConfig, "documents")

SAMPLING_FLAGS = tuple(options_of(SamplingConfig))


def main():
    check_output_flag("output", ("input", "terminology", "memory"))
    check_memory_flag()
    path = FLAGS.terminology
    terms = {"terminology": None if path is None else terms_of(path, "terminology")}
    kind = LinesConfig if takes_lines() else DocumentConfig
    require_memory_for_matches()
    values = flag_values(kind) | terms
    if FLAGS.columns is not None:
        values["columns"] = tuple(FLAGS.columns)
    config = kind(**values)
    if isinstance(config, DocumentConfig):
        config.check_content()
    sampling = sampling_config()
    stored = open_model_flags(fixed_in_export=("sample", *SAMPLING_FLAGS))
    to = {"to": language_flags(stored)}
    config = dataclasses.replace(config, **to)
    if isinstance(config, DocumentConfig) and is_unreadable(config):
        config = dataclasses.replace(config, output=new_output(config, stored))
    options = {"n_best": FLAGS.n_best, "sampling": sampling, "mbr": FLAGS.mbr}
    has_terms = FLAGS.terminology is not None
    translator = load_model_with_memory(stored, needs_tensorflow=has_terms, **options)
    if translator.card.description.task == "parsing":
        refuse_document_flags("for a parsing model", FLAGS.model_dir or FLAGS.saved_model)
        config = LinesConfig(**flag_values(LinesConfig) | terms | to)
    if isinstance(config, DocumentConfig):
        result = translate_file(translator, config)
    else:
        result = translate_lines(translator, config)
    result["engine"] = translator.engine.name
    if FLAGS.saved_model is not None:
        result["saved_model"] = FLAGS.saved_model
    if result["output"] != "-":
        return result
    print(json.dumps(result, ensure_ascii=False), file=sys.stderr)
    return None


def takes_lines():
    """Whether each line is passed to the model unchanged."""
    names = ("one_sentence_per_line", *options_of(LinesConfig))
    asking = [name for name in names if FLAGS[name].value != FLAGS[name].default]
    if asking:
        refuse_document_flags("when each line is translated unchanged", f"--{asking[0]}")
    return bool(asking)


def require_memory_for_matches():
    from keras_transformer.support.errors import require

    fits = FLAGS.memory is not None or not FLAGS.matches
    require(fits, "matches", "must be given with --memory", FLAGS.matches)


def refuse_document_flags(where, received):
    from keras_transformer.support.errors import require

    for name in options_of(DocumentConfig):
        require(not FLAGS[name].present, name, f"must not be given {where}", received)


def is_unreadable(document):
    """Whether a document's bytes would be written to a terminal."""
    is_binary = FORMATS[document.read_as].is_archive
    return is_binary and document.output == "-" and sys.stdout.isatty()


def new_output(document, stored):
    """Returns the path of a new file next to a document, for its translation."""
    from keras_transformer.support.errors import require
    from keras_transformer.support.files.paths import to_path

    has_name = document.input != "-" and not FLAGS["output"].present
    rule = f"must be a file for format={document.read_as}, unless stdout is a file or a pipe"
    require(has_name, "output", rule, "a terminal")
    path = path_beside(document.input, document.read_as, target_language(stored))
    rule = "must be given, because the file next to the input exists already"
    require(not to_path(path).exists(), "output", rule, repr(path))
    print(f"the translation will be written to {path}", file=sys.stderr)
    return path


def target_language(stored):
    """Returns the language of the translations as far as the model's files tell, or None."""
    from keras_transformer.use.store.languages import find_language, model_languages

    languages = None if stored.description is None else model_languages(stored.description)
    targets = () if languages is None else languages.targets
    if FLAGS.to is not None and find_language(targets, FLAGS.to) is not None:
        return FLAGS.to
    return targets[0] if len(targets) == 1 else None


def sampling_config():
    """Returns how to sample, or None for a search."""
    from keras_transformer.support.errors import require

    for name in SAMPLING_FLAGS:
        is_free = FLAGS.sample or not FLAGS[name].present
        require(is_free, name, "must be given with --sample", FLAGS[name].value)
    return SamplingConfig(**flag_values(SamplingConfig)) if FLAGS.sample else None


if __name__ == "__main__":
    run(main)
