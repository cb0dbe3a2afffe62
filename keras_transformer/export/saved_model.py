"""A trained model as one SavedModel that takes text and gives text.

    serving_default  {"text": string [B]} -> {"translation": string [B], "score": float32 [B]}
    best             {"text": string [B]} -> {"translation": string [B], "score": float32 [B],
                     "log_prob": float32 [B], "length": int32 [B], "truncated": bool [B]}
    n_best           {"text": string [B]} -> the same of [B, K], but "truncated": bool [B]
    beams            the same, from a search that ends when the first of them is certain
    score            {"source": string [B], "target": string [B]} -> {"log_prob": float32 [B],
                     "length": int32 [B], "perplexity": float32 [B]}
    score_ids        {"source": int32 [B, S], "target": int32 [B, T]} -> {"log_prob": float32 [B]}
    lengths          {"text": string [B]} -> {"length": int32 [B]}
    tokenize         {"text": string [B]} -> {"ids": int32 [B, S], "length": int32 [B],
                     "pieces": string [B, S]}
    attention        {"source": string [B], "target": string [B]} -> {"source_pieces": string
                     [B, S], "target_pieces": string [B, T], "encoder": float32 [B, N, H, S, S],
                     "decoder": float32 [B, N, H, T, T], "memory": float32 [B, N, H, T, S],
                     "alignment": int32 [B, T]}

decoding/answers.py says what they mean. Vocabulary, beam search and weights are inside, in
operations of TensorFlow and tensorflow_text only: whoever loads it needs those two packages and
nothing of this one. B may be 0, or as large as texts fit in memory. Texts are UTF-8; invalid bytes
are read as U+FFFD, blank texts give "" with score 0, and texts longer than the model's limit are
cut there, which `truncated` tells. Where a text has fewer than K translations, the last are ""
with score -inf. A parsing model reads words and writes the tokens of a tree: here as it wrote them,
while a loaded export gives trees (keras_transformer.load).

assets.extra/model_card.json says what was exported.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.inference import DecodingConfig, Tokenizer, source_limit
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.errors import InputError, reason
from keras_transformer.export.model_card import CARD, write_card
from keras_transformer.export.stored_weights import stored_weights
from keras_transformer.files import replacing_folder


class TextToText(tf.Module):
    """What is saved: the graphs of decoding/answers.py, the vocabulary and the weights."""

    def __init__(
        self, model: keras.Model, tokenizer: Tokenizer, config: DecodingConfig, weights: str
    ):
        super().__init__(name="text_to_text")
        self.tokenizer = tokenizer  # tracked, for its vocabulary
        self.weights, reading_weights = stored_weights(model, weights)
        graphs = text_graphs(model, tokenizer, config, reading_weights)
        del graphs["continuation"]  # a third search would make the export half as large again
        self.graphs = graphs


def export_saved_model(
    model: keras.Model,
    tokenizer: Tokenizer,
    config: DecodingConfig,
    export_dir: str | os.PathLike,
    facts: dict[str, Any],
    about: dict[str, Any] | None = None,
    weights: str = "float32",
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the SavedModel; `export_dir` appears when it is complete, or not at all.

    Args:
        model: any Transformer.
        tokenizer: the vocabulary it was trained with, a tf.Module.
        config: how the SavedModel translates.
        export_dir: must not exist, or be empty, unless `overwrite`.
        facts: what the checkpoint is, for the model card and the result.
        about: more for the model card; see model_card.describe. Without it, the task is
            translation.
        weights: how they are stored, "float32" or "bfloat16".
        overwrite: whether an earlier export may be replaced.

    Returns:
        {"saved_model": export_dir, "bytes", "checkpoint", ...}.

    Raises:
        InputError: where `export_dir` holds something, or cannot be written.
    """
    export_dir = Path(export_dir)
    check_export_dir(export_dir, overwrite)
    model = inference_model(model)
    module = TextToText(model, tokenizer, config, weights)
    card = {
        **{"task": "translation", "task_options": {}, **facts, **(about or {})},
        **numbers(model, tokenizer, config),
        "weights": weights,
        "tensorflow": tf.__version__,
    }
    with appearing_at_once(export_dir.resolve()) as folder:
        tf.saved_model.save(module, str(folder), signatures=module.graphs)
        write_card(folder, card)
    size = sum(file.stat().st_size for file in export_dir.rglob("*") if file.is_file())
    return {"saved_model": str(export_dir), "bytes": size, **facts}


def numbers(model: keras.Model, tokenizer: Tokenizer, config: DecodingConfig) -> dict[str, Any]:
    """What the model is, and how it translates.

    Returns:
        The fields of DecodingConfig, and {"config", "parameters", "vocabulary_fingerprint"}.
    """
    return {
        **dataclasses.asdict(config),
        "max_source_length": source_limit(model.config, config),
        "config": dataclasses.asdict(model.config),
        "parameters": model.count_params(),
        "vocabulary_fingerprint": tokenizer.fingerprint,
    }


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
    try:
        with replacing_folder(target) as folder:
            yield folder
    except (OSError, tf.errors.OpError) as error:
        rule = "--export_dir must be writable"
        raise InputError(f"{rule}. Received: {target}: {reason(error)}") from None


def load_graphs(path: str | os.PathLike) -> dict[str, Callable[..., dict[str, tf.Tensor]]]:
    """Loads the signatures of a SavedModel of `export_saved_model`.

    Raises:
        InputError: where it cannot be loaded; `read_card` says more of what is wrong.
    """
    import tensorflow_text  # noqa: F401  (registers the operations of the vocabulary)

    try:
        return dict(tf.saved_model.load(str(path)).signatures)
    except Exception as error:  # damaged bytes can end in any
        rule = "--saved_model must be a directory that bin/export.py made"
        raise InputError(f"{rule}. Received: {str(path)!r}: {reason(error)}") from None
