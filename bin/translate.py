"""Translates a file or a stream with a trained or exported model.

Line n of the output translates line n of the input, however many sentences it has. With
--format=wrapped, paragraphs span several lines, as in an e-mail. Other formats keep their
structure. With --one_sentence_per_line, --target_prefixes or output columns (--n_best, --scores,
--alignments, --token_scores), each line is passed to the model unchanged.

A parsing model (bin/prepare_data.py --dataset=treebank) writes a bracketed tree for each line, a
sentence with spaces between its words.

The result is one JSON line on stdout, or on stderr if the translations go to stdout.
keras_transformer/documents/lines.py describes the columns.
"""

from command import (  # isort: skip  (first: it makes the checkout importable)
    check_memory_flag,
    check_model_flags,
    check_output_flag,
    define_flags,
    define_memory_flag,
    define_model_flags,
    flag_values,
    load_model_with_memory,
    run,
    terms_of,
)

import json
import sys

from absl import flags

from keras_transformer.documents.document_file import DocumentConfig, translate_file
from keras_transformer.documents.lines import LinesConfig, translate_lines
from keras_transformer.search.config import SamplingConfig

FLAGS = flags.FLAGS
define_model_flags()
flags.DEFINE_string(
    "input",
    "-",
    "File to translate: UTF-8 text or another --format, possibly compressed (.gz, .zst). - is "
    "stdin.",
)
flags.DEFINE_string(
    "output",
    "-",
    "File to write; compressed if its name ends in .gz or .zst. - is stdout.",
)
flags.DEFINE_string(
    "to",
    None,
    "Target language, such as de, if the model has several. Without it, each text must begin with "
    "a language code, such as >>de<<.",
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

OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
OF_LINES = ("n_best", "scores", "alignments", "token_scores", "target_prefixes")
OF_DOCUMENTS = ("format", "columns", "language", "case")


def main():
    check_output_flag("output", ("input", "terminology", "memory"))
    check_memory_flag()
    path = FLAGS.terminology
    terms = {"terminology": None if path is None else terms_of(path, "terminology")}
    lines = LinesConfig(**flag_values(LinesConfig) | terms)
    line_by_line = takes_lines()
    columns = None if FLAGS.columns is None else tuple(FLAGS.columns)
    document = None
    if not line_by_line:
        document = DocumentConfig(**flag_values(DocumentConfig) | terms | {"columns": columns})
        document.check_content()
    sampling = sampling_config()
    check_model_flags(fixed_in_export=("sample", *OF_SAMPLING))
    options = {"n_best": FLAGS.n_best, "sampling": sampling, "mbr": FLAGS.mbr}
    translator = load_model_with_memory(**options)
    if translator.card.origin.task == "parsing":
        refuse_document_flags("for a parsing model", FLAGS.model_dir or FLAGS.saved_model)
        line_by_line = True
    if line_by_line:
        result = translate_lines(translator, lines)
    else:
        result = translate_file(translator, document)
    if FLAGS.saved_model is not None:
        result["saved_model"] = FLAGS.saved_model
    if FLAGS.output != "-":
        return result
    print(json.dumps(result, ensure_ascii=False), file=sys.stderr)
    return None


def takes_lines():
    """Whether each line is passed to the model unchanged."""
    names = ("one_sentence_per_line", *OF_LINES)
    asking = [name for name in names if FLAGS[name].value != FLAGS[name].default]
    if asking:
        refuse_document_flags("when each line is translated unchanged", f"--{asking[0]}")
    return bool(asking)


def refuse_document_flags(where, received):
    from keras_transformer.errors import require

    for name in OF_DOCUMENTS:
        require(not FLAGS[name].present, name, f"must not be given {where}", received)


def sampling_config():
    """Returns how to sample, or None for a search."""
    from keras_transformer.errors import require

    for name in OF_SAMPLING:
        is_free = FLAGS.sample or not FLAGS[name].present
        require(is_free, name, "must be given with --sample", FLAGS[name].value)
    return SamplingConfig(*[FLAGS[name].value for name in OF_SAMPLING]) if FLAGS.sample else None


if __name__ == "__main__":
    run(main)
