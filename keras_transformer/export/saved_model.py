"""A trained model as one SavedModel that takes text and gives text.

    serving_default  {"text": string [B]} -> {"translation": string [B], "score": float32 [B]}
    best             {"text": string [B]} -> {"translation": string [B], "score": float32 [B],
                     "log_prob": float32 [B], "length": int32 [B], "truncated": bool [B]}
    n_best           {"text": string [B]} -> the same of [B, K], but "truncated": bool [B]
    score            {"source": string [B], "target": string [B]} -> {"log_prob": float32 [B],
                     "length": int32 [B], "perplexity": float32 [B]}
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
with score -inf.

assets.extra/model_card.json says what was exported.
"""

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.decoding import answers
from keras_transformer.decoding.inference import DecodingConfig, Tokenizer, source_limit
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.decoding.streams import in_streams, streams
from keras_transformer.decoding.translator import TargetScore, length_batches, utf8
from keras_transformer.errors import InputError, reason
from keras_transformer.export.model_card import CARD, read_card, write_card
from keras_transformer.export.stored_weights import stored_weights
from keras_transformer.files import replacing_folder

# Tells how many tokens a text may be without encoding it, only to batch texts of similar length.
BYTES_PER_TOKEN = 4


class TextToText(tf.Module):
    """What is saved: the graphs of decoding/answers.py, the vocabulary and the weights."""

    def __init__(
        self, model: keras.Model, tokenizer: Tokenizer, config: DecodingConfig, weights: str
    ):
        super().__init__(name="text_to_text")
        self.tokenizer = tokenizer  # tracked, for its vocabulary
        self.weights, reading_weights = stored_weights(model, weights)

        def graph(answer, *names, config=config):
            specs = [tf.TensorSpec([None], tf.string, name) for name in names]

            @tf.function(input_signature=specs, autograph=False)
            def answer_texts(*texts):
                with reading_weights():
                    return answer(model, tokenizer, *texts, config)

            return answer_texts

        # A search of its own, which ends as soon as the best translation is certain.
        best_only = dataclasses.replace(config, n_best=1)
        best = graph(answers.best, "text", config=best_only)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")], autograph=False)
        def serving_default(text):
            found = best(text)
            return {name: found[name] for name in ("translation", "score")}

        self.graphs = {
            "serving_default": serving_default,
            "best": best,
            "n_best": graph(answers.n_best, "text"),
            "score": graph(answers.score, "source", "target"),
            "tokenize": graph(answers.tokenize, "text"),
            "attention": graph(answers.attention, "source", "target"),
        }


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
        about: more for the model card; see model_card.describe.
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
        **facts,
        **(about or {}),
        **dataclasses.asdict(config),
        "max_source_length": source_limit(model, config),
        "config": dataclasses.asdict(model.config),
        "parameters": model.count_params(),
        "weights": weights,
        "vocabulary_fingerprint": tokenizer.fingerprint,
        "tensorflow": tf.__version__,
    }
    with appearing_at_once(export_dir.resolve()) as folder:
        tf.saved_model.save(module, str(folder), signatures=module.graphs)
        write_card(folder, card)
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
    try:
        with replacing_folder(target) as folder:
            yield folder
    except (OSError, tf.errors.OpError) as error:
        rule = "--export_dir must be writable"
        raise InputError(f"{rule}. Received: {target}: {reason(error)}") from None


class ExportedTranslation(NamedTuple):
    """One answer to a sentence; begins like a Translation."""

    text: str
    score: float  # log-probability / length penalty
    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted


class PairAttention(NamedTuple):
    """What predicting each of T target tokens attends to; see decoding/attention_maps.py."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T
    encoder: np.ndarray  # float32 [N, H, S, S]
    decoder: np.ndarray  # float32 [N, H, T, T]
    memory: np.ndarray  # float32 [N, H, T, S]
    alignment: np.ndarray  # int32 [T], source positions


class ExportedTranslator:
    """A SavedModel of `export_saved_model`, used like a Translator.

    Args:
        path: of the SavedModel.
        n_best: 1 for the best translations alone, which are found sooner; None for all.

    Attributes:
        card: what was exported.
        truncated: number of sentences cut to the limit so far.

    Raises:
        InputError: where there is no such SavedModel, or it is not whole or of another version.
    """

    def __init__(self, path: str | os.PathLike, n_best: int | None = None):
        import tensorflow_text  # noqa: F401  (registers the operations of the vocabulary)

        self.card = read_card(path)
        try:
            self._loaded = tf.saved_model.load(str(path))
        except Exception as error:  # damaged bytes can end in any
            rule = "--saved_model must be a directory that bin/export.py made"
            raise InputError(f"{rule}. Received: {str(path)!r}: {reason(error)}") from None
        self.truncated = 0
        self._signature = "best" if n_best == 1 else "n_best"

    def translate(self, sentences: Sequence[str]) -> list[list[ExportedTranslation]]:
        """Returns the translations of each sentence, best first, in the order of the sentences.

        There is at least one for each sentence, and at most `card["beam_size"]`.

        Args:
            sentences: texts of any length, empty ones included.

        Raises:
            InputError: if the model's weights are not finite.
        """
        texts = [utf8(sentence) for sentence in sentences]
        lengths = [len(text) // BYTES_PER_TOKEN for text in texts]
        batches = list(length_batches(lengths, self.card["batch_tokens"], streams()))
        answers: list[list[ExportedTranslation]] = [[] for _ in texts]
        found = in_streams(
            lambda batch: self._run(self._signature, [texts[i] for i in batch]), batches
        )
        for batch, columns in zip(batches, found, strict=True):
            self.truncated += int(np.count_nonzero(columns["truncated"]))
            for i, answer in zip(batch, exported_translations(columns), strict=True):
                answers[i] = answer
        return answers

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[TargetScore]:
        """Returns how probable the model finds each target as a translation of its source.

        Raises:
            InputError: if there are not as many targets as sources.
        """
        if len(sources) != len(targets):
            rule = "there must be a target for every source"
            raise InputError(f"{rule}. Received: {len(sources)} and {len(targets)}")
        found = self._run("score", map(utf8, sources), map(utf8, targets))
        columns = (found["log_prob"].tolist(), found["length"].tolist())
        return [TargetScore(*row) for row in zip(*columns, strict=True)]

    def attention(self, source: str, target: str) -> PairAttention:
        """Returns the attention of all heads for a pair."""
        found = self._run("attention", [utf8(source)], [utf8(target)])
        pieces = {
            name: [piece.decode("utf-8") for piece in found.pop(name)[0].tolist()]
            for name in ("source_pieces", "target_pieces")
        }
        return PairAttention(**pieces, **{name: array[0] for name, array in found.items()})

    def _run(self, signature: str, *texts: Iterable[bytes]) -> dict[str, np.ndarray]:
        names = ("text",) if len(texts) == 1 else ("source", "target")
        inputs = {
            name: tf.constant(list(part), tf.string)
            for name, part in zip(names, texts, strict=True)
        }
        outputs = self._loaded.signatures[signature](**inputs)
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def exported_translations(columns: dict[str, np.ndarray]) -> list[list[ExportedTranslation]]:
    """Makes the answers of a batch of the outputs of `best` or `n_best`.

    Raises:
        InputError: where a score is NaN.
    """
    if np.any(np.isnan(columns["score"])):
        raise InputError("the model's weights must be finite. Received: scores that are NaN")
    count = len(columns["score"])
    fields = [
        columns[name].reshape(count, -1).tolist() if count else []
        for name in ("translation", "score", "log_prob", "length")
    ]
    return [
        [
            ExportedTranslation(text.decode("utf-8"), *numbers)
            for text, *numbers in zip(*rows, strict=True)
            if numbers[0] > -np.inf
        ]
        for rows in zip(*fields, strict=True)
    ]
