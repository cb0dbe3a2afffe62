"""What the programs print: the fields of their results, which are one line of JSON.

Every test that runs a program compares its result with these fields (tests/program_fixtures.py).
"""

from docs.site.fields import table
from keras_transformer.kit.exchange.formats import FORMATS

# Of a checkpoint: which weights were used. Those that are not known are left out.
CHECKPOINT = {
    "checkpoint": "a name in the model directory, a path, or what was averaged (`average:5`)",
    "step": "of the checkpoint, or of the last one of an average",
    "averaged": "the number of checkpoints that the weights are the mean of",
    "validation_loss": "nats per token, of the checkpoint, or of the last one of an average",
    "epochs": "passes over the training data, up to that step",
    "adapter_scale": "what the changes of an adapter were multiplied by, if not by 1",
}
PARSER = {
    "repaired": "parsing: sentences whose output needed repair to be a tree",
    "repairs": "parsing: what these needed, by kind",
}
TREES = {
    "f1": "labelled bracket F1 in percent, as EVALB computes it",
    "precision": "of brackets, in percent",
    "recall": "of brackets, in percent",
    "complete_match": "sentences whose brackets are all right, in percent",
    "average_crossing": "crossing brackets per sentence",
    "no_crossing": "sentences without any, in percent",
    "two_or_less_crossing": "sentences with at most two, in percent",
    "tagging_accuracy": "words with the right tag, in percent",
    "sentences": "number of sentences",
    "skipped": "sentences without a tree",
    "errors": "sentences whose tree has other words than the gold tree",
    "up_to_40_words": "all of this, of sentences of at most 40 words",
    "by_length": "F1, precision and recall by the number of words",
    "by_label": "F1, precision and recall of each label, the most frequent first",
}
SIZE = {"parameters": "number of weights of the model"}
SECONDS = {"seconds": "of the whole call"}

# Program -> field -> what it is.
RESULTS: dict[str, dict[str, str]] = {
    "prepare_data": {
        "data_dir": "the folder",
        "up_to_date": "`true` if the data set was already there, complete and undamaged",
        "tokenizer": "`bpe`, `wordpiece` or `pieces`",
        "vocab_size": "ids of the vocabulary, or of the target's",
        "source_vocab_size": "ids of the source's own vocabulary; `null` for a shared one",
        "pairs": "pairs of each split",
        "added": "training pairs that `--augment` added, by kind",
        "dropped": "pairs of each split that were left out, by reason",
        **SECONDS,
    },
    "train": {
        "step": "optimizer steps so far, over all starts",
        "minutes": "minutes of training so far, over all starts",
        "epochs": "passes over the training data so far, over all starts",
        "stopped": "`train_steps`, `train_minutes`, `patience` or `SIGTERM`: what ended the run",
        "loss": "with label smoothing, nats per token: of the steps since the last point of the "
        "curves, as are the next six",
        "cross_entropy": "without label smoothing, nats per token",
        "perplexity": "exp(cross_entropy)",
        "tokens_per_second": "target tokens without padding",
        "padding": "its share of all positions, from 0 to 1",
        "gradient_norm": "mean over steps",
        "skipped": "steps whose gradients were not finite",
        "validation_loss": "of the last validation, without label smoothing, nats per token",
        "validation_perplexity": "exp(validation_loss)",
        "validation_bleu": "of the sample of `--sample_sentences`; of several directions, the "
        "mean, and beside it `validation_chrf`, and both of each direction, as "
        "`validation_bleu_en-de`",
        "validation_f1": "parsing: of this sample",
        "validation_repaired": "parsing: trees of this sample that needed repair, in percent",
        **SIZE,
        "trained_parameters": "of these, the ones that this run changes, where some are frozen",
        "checkpoints": "number of checkpoints that are kept",
        "checkpoint": "path of the last one",
        "best": "path of the best one, by `--best_metric`",
        "worker": "of workers other than the first one: its number. They give no more than the "
        "first three fields",
    },
    "evaluate": {
        "bleu": "sacreBLEU, in percent; of several directions, their mean",
        "chrf": "in percent; the same",
        "signature": "sacreBLEU's, of `bleu`",
        "chrf_signature": "sacreBLEU's, of `chrf`",
        "brevity_penalty": "of `bleu`",
        "length_ratio": "words of the translations / words of the references",
        "directions": "of several directions: `sentences` and the scores of each, as of `en-de`",
        "paper_bleu": "as the paper computed it, in percent; with the extra `paper`",
        "paper_bleu_signature": "how that was computed",
        **{name: f"parsing: {meaning}" for name, meaning in TREES.items() if name != "sentences"},
        "well_formed": "parsing: trees over exactly the words of the sentence, in percent",
        **PARSER,
        "perplexity": "of the references, for each subword",
        "cross_entropy": "its logarithm, nats per subword",
        "tokens": "subwords of the references",
        "sentences": "how many were translated",
        "truncated": "sources that were longer than the model reads",
        "beam_size": "of the search",
        "alpha": "its length penalty",
        **CHECKPOINT,
        "robustness": "with `--robustness`: `bleu` and `chrf` of `plain`, `upper`, `title`, "
        "`typos` and `no_stop`; of `one_word`, the number of `words` and the share of `bad` ones",
        "chosen": "with `--choose_alpha`: the chosen `alpha` for this `beam_size`, its `bleu`, the "
        "`split` and the `checkpoint` of that, and `bleu_by_alpha` of all that were tried",
        "split": "of the data",
        "data_dir": "as it was given",
        "dataset": "`--dataset` of its preparation",
        "languages": "of source and target, or all of several directions; `null` if not known",
        "early_stopping": "if it was given",
        "min_length": "if it was given",
        "no_repeat_ngram_size": "if it was given",
        "forbidden_phrases": "if it was given",
        **SECONDS,
    },
    "translate": {
        "format": "of the document; not with `--one_sentence_per_line` and what implies it",
        "lines": "of the input",
        "truncated": "lines, or sentences of a document, that were longer than the model reads",
        "left": "of a document: how many pieces with letters stayed as they are, by kind",
        "unfinished": "translations that reached their length limit",
        "from_memory": "lines, or sentences of a document, that the translation memory had",
        "without_terms": "those whose translation lacks a term",
        **SECONDS,
        "output": "as it was given, or the new file next to the input",
        **CHECKPOINT,
        **PARSER,
        "saved_model": "as it was given",
    },
    "export": {
        **{name: f"{kind.result}, with `--format={name}`" for name, kind in FORMATS.items()},
        "bytes": "size of all its files",
        **CHECKPOINT,
        "ensemble": "the same of each model, if there are several",
    },
    "serve": {
        "requests": "that were answered",
        "errors": "those of them that were refused or failed",
        "sentences": "of requests for sentences",
        "batches": "in which these were translated",
        "documents": "texts of any length",
        "seconds": "from the start to the end of serving",
    },
    "adapt": {
        "adapter_dir": "the folder, as it was given",
        "checkpoint": "path of the adapter's newest checkpoint",
        "learnt": "corrections that the adapter has learnt, over all starts",
        "new": "the ones that this call learnt",
        "too_long": "new corrections that were left out, because a side is longer than the "
        "model's training sentences",
        "stopped": "`SIGTERM`, if that ended it; else `null`",
        "seconds_per_correction": "median of this call; `null` if it learnt none",
        **SECONDS,
    },
    "import_model": {
        "model_dir": "the folder",
        "checkpoint": "name of the checkpoint in it",
        **SIZE,
        "repository": "with `--hub`: as it was given",
        "revision": "with `--hub`: the commit that was downloaded",
        "license": "with `--hub`: as the model card names it; null if it names none",
    },
    "average_checkpoints": {
        **CHECKPOINT,
        "checkpoint": "path of the new checkpoint",
    },
    "attention": {
        "output": "the page, as it was given",
        "bytes": "its size",
        "picture": "as it was given",
        "source_pieces": "subwords of the source",
        "target_pieces": "subwords of the translation",
        "translation": "the model's, if no `--target` was given",
        **CHECKPOINT,
    },
    "paper_tables": {
        f"table{number}": f"with `--json`: the rows of Table {number}" for number in (1, 2, 3, 4)
    },
    "sweep": {
        "table": "path of the table in Markdown",
        "rows": "what was trained: the settings, scores and commands of each row",
        "failed": "rows that failed, each with its error",
    },
    "quickstart": {
        "bleu": "of the test split",
        "bleu_compositional": "of words in constructions that training never combined them with",
        "signature": "sacreBLEU's",
        "perplexity": "of the test split",
        "steps": "of training",
        "seconds": "of all steps together",
        "seconds_of": "of each step, by the name of its program",
        "data_dir": "the data",
        "model_dir": "the model",
        "saved_model": "its export",
        "translations": "some sentences, each with its translation",
    },
}


def page() -> str:
    """All programs with the fields of their results."""
    text = "# Results of the programs\n\nA program prints one line of JSON on stdout, and its log "
    text += "on stderr. Where translations go to stdout, the result goes to stderr. A field that "
    text += "does not apply is left out or `null`.\n"
    for name, fields in RESULTS.items():
        text += f"\n## {name}\n\n"
        text += table(["Field", "What it is"], [[f"`{key}`", fields[key]] for key in fields])
    return text
