"""A trained model as one SavedModel that takes text and gives text.

    serving_default  {"text": string [B]} -> {"translation": string [B], "score": float32 [B]}
    n_best           {"text": string [B]} -> {"translation": string [B, K], "score": float32
                     [B, K], "truncated": bool [B]}

Vocabulary, beam search and weights are inside, in operations of TensorFlow and tensorflow_text
only: whoever loads it needs those two packages and nothing of this one. Texts are UTF-8; invalid
bytes are read as U+FFFD, blank texts give "" with score 0, and texts longer than the model's limit
are cut there, which `truncated` tells. Where a text has fewer than K translations, the last are ""
with score -inf.

assets.extra/model_card.json says what was exported.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.config import PAD_ID
from keras_transformer.decoding.inference import (
    DecodingConfig,
    Tokenizer,
    encode_text,
    source_limit,
    translate_ids,
)
from keras_transformer.decoding.translator import Translation, length_batches, translations, utf8
from keras_transformer.errors import InputError, reason

CARD = Path("assets.extra") / "model_card.json"
# Tells how many tokens a text may be without encoding it, only to batch texts of similar length.
BYTES_PER_TOKEN = 4


class TextToText(tf.Module):
    """What is saved: the graph of `translate_ids`, and the encoding of texts before it."""

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, config: DecodingConfig):
        super().__init__(name="text_to_text")
        self.tokenizer = tokenizer  # tracked, for its vocabulary
        # The variables alone: what else a Keras model would save is not needed.
        self.weights = [variable.value for variable in model.trainable_variables]
        text = tf.TensorSpec([None], tf.string, name="text")

        @tf.function(input_signature=[text], autograph=False)
        def n_best(text):
            ids, truncated = encode_text(tokenizer, text, source_limit(model, config))
            texts, scores = translate_ids(model, tokenizer, ids.to_tensor(PAD_ID), config)
            return {"translation": texts, "score": scores, "truncated": truncated}

        @tf.function(input_signature=[text], autograph=False)
        def serving_default(text):
            best = n_best(text)
            return {name: best[name][:, 0] for name in ("translation", "score")}

        self.n_best = n_best
        self.serving_default = serving_default


def export_saved_model(
    model: keras.Model,
    tokenizer: Tokenizer,
    config: DecodingConfig,
    export_dir: str | os.PathLike,
    facts: dict[str, Any],
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the SavedModel; `export_dir` appears when it is complete, or not at all.

    Args:
        model: from build_transformer.
        tokenizer: the vocabulary it was trained with, a tf.Module.
        config: how the SavedModel translates.
        export_dir: must not exist, or be empty, unless `overwrite`.
        facts: what the checkpoint is, for the model card.
        overwrite: whether an earlier export may be replaced.

    Returns:
        {"saved_model": export_dir, "bytes", "checkpoint", ...}.

    Raises:
        InputError: where `export_dir` holds something, or cannot be written.
    """
    export_dir = Path(export_dir)
    check_export_dir(export_dir, overwrite)
    module = TextToText(model, tokenizer, config)
    card = {
        **facts,
        "beam_size": config.beam_size,
        "alpha": config.alpha,
        "extra_length": config.extra_length,
        "max_source_length": source_limit(model, config),
        "vocabulary_fingerprint": tokenizer.fingerprint,
        "parameters": sum(weight.shape.num_elements() for weight in module.weights),
        "tensorflow": tf.__version__,
    }
    with appearing_at_once(export_dir.resolve()) as folder:
        signatures = {"serving_default": module.serving_default, "n_best": module.n_best}
        tf.saved_model.save(module, str(folder), signatures=signatures)
        (folder / CARD).parent.mkdir()
        (folder / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    size = sum(file.stat().st_size for file in export_dir.rglob("*") if file.is_file())
    return {"saved_model": str(export_dir), "bytes": size, **facts}


def check_export_dir(export_dir: str | os.PathLike, overwrite: bool) -> None:
    """Refuses to lose anything: only an earlier export is replaced, and only if asked to.

    Raises:
        InputError: where `export_dir` holds something else.
    """
    export_dir = Path(export_dir)
    if not export_dir.exists() or (export_dir.is_dir() and not any(export_dir.iterdir())):
        return
    if not overwrite:
        rule = "--export_dir must not exist yet, or be empty, without --overwrite"
        raise InputError(f"{rule}. Received: {str(export_dir)!r}")
    if not (export_dir / CARD).is_file():
        rule = "--overwrite replaces nothing but an earlier export"
        raise InputError(f"{rule}. Received: --export_dir={str(export_dir)!r}")


@contextlib.contextmanager
def appearing_at_once(target: Path) -> Iterator[Path]:
    """Gives a new folder beside `target` that takes its name, or its place, in the end.

    Raises:
        InputError: where it cannot be written.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    replaced = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if target.exists():
            target.rename(replaced)
        temporary.rename(target)
    except (OSError, tf.errors.OpError) as error:
        rule = "--export_dir must be writable"
        raise InputError(f"{rule}. Received: {target}: {reason(error)}") from None
    finally:
        if replaced.exists() and not target.exists():
            replaced.rename(target)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


class ExportedTranslator:
    """A SavedModel of `export_saved_model`, used like a Translator.

    Args:
        path: of the SavedModel.
        batch_tokens: about how many source tokens are translated at once.

    Attributes:
        card: what was exported.
        truncated: number of sentences cut to the limit so far.

    Raises:
        InputError: where there is no such SavedModel.
    """

    def __init__(self, path: str | os.PathLike, batch_tokens: int = DecodingConfig.batch_tokens):
        import tensorflow_text  # noqa: F401  (registers the operations of the vocabulary)

        try:
            self.card = json.loads((Path(path) / CARD).read_text(encoding="utf-8"))
            self._loaded = tf.saved_model.load(str(path))
        except (OSError, ValueError, tf.errors.OpError) as error:
            rule = "--saved_model must be a directory that bin/export.py made"
            raise InputError(f"{rule}. Received: {str(path)!r}: {reason(error)}") from None
        self._n_best = self._loaded.signatures["n_best"]
        self.batch_tokens = batch_tokens
        self.truncated = 0

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Returns the translations of each sentence, best first, in the order of the sentences."""
        texts = [utf8(sentence) for sentence in sentences]
        answers: list[list[Translation]] = [[] for _ in texts]
        lengths = [len(text) // BYTES_PER_TOKEN for text in texts]
        for batch in length_batches(lengths, self.batch_tokens):
            best = self._n_best(text=tf.constant([texts[i] for i in batch]))
            self.truncated += int(tf.math.count_nonzero(best["truncated"]))
            rows = zip(batch, best["translation"].numpy(), best["score"].numpy(), strict=True)
            for i, row, scores in rows:
                answers[i] = translations(row, scores)
        return answers
