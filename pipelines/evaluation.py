"""Evaluates a trained model on a split of a prepared data directory."""

import dataclasses
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from absl import logging

from keras_transformer.core.training.checkpoint_files import choose_checkpoint
from keras_transformer.core.vocabulary.language_codes import (
    directions_of,
    source_languages_of,
    target_languages_of,
)
from keras_transformer.support.errors import require
from keras_transformer.support.fields import Size, check_fields, one_of, option
from keras_transformer.support.output_files import check_output, write_lines
from keras_transformer.use.store.calibration import Calibration
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.store.decoding import ChosenDecoding
from keras_transformer.use.store.results import (
    write_calibration,
    write_chosen_decoding,
    write_results,
)
from pipelines.batches.data_set import DataSet

if TYPE_CHECKING:  # a module with TensorFlow
    from keras_transformer.use.translate.translator import Translator

CHOOSING_SPLIT = "validation"  # for choosing alpha, and for calibrating confidence
TOKENIZATIONS = ("13a", "none", "intl", "char", "zh")


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """The split to score, and the options for scoring it."""

    split: str = option(
        "test", "Split to score; the data keeps the text of all splits except train."
    )
    limit: Size | None = option(
        None,
        "Translate at most this many sentences per direction. Perplexity always covers all.",
    )
    output: str | None = option(None, "File for the translations or trees, one per line.")
    tokenize: Annotated[str, one_of(*TOKENIZATIONS)] | None = option(
        None, "sacreBLEU's tokenizer; 13a by default."
    )
    lowercase: bool = option(False, "Ignore case in scores.")
    robustness: bool = option(
        False,
        "Also score the split in all-caps, in title case, with typos and without full stops, and "
        "single words.",
    )
    choose_alpha: bool = option(
        False,
        "First choose alpha on the validation split, and store it in the model directory, where "
        "translate, serve and export find it.",
    )

    calibrate: bool = option(
        False,
        "First fit the confidence in translations to the validation split, and store it in the "
        "model directory, where translate, serve and export find it.",
    )

    def __post_init__(self):
        check_fields(self)

    def check(self, data: DataSet) -> None:
        """Checks that the data can be scored this way, without TensorFlow.

        Raises:
            InputError: if an option does not suit the data, or the output cannot be written.
        """
        metadata = data.metadata
        with_text = [name for name, info in metadata.splits.items() if info.texts]
        rule = f"must be one with text in {data.data_dir} ({', '.join(with_text) or 'none'})"
        require(self.split in with_text, "split", rule, self.split)
        if self.output is not None:
            check_output(self.output, inputs={"those of data_dir": data.files()})
        if metadata.task == "parsing":
            rule = "must be used with translations, but data_dir has trees"
            require(self.tokenize is None, "tokenize", rule, self.tokenize)
            require(not self.lowercase, "lowercase", rule, self.lowercase)
            require(not self.robustness, "robustness", rule, self.robustness)
            require(not self.choose_alpha, "choose_alpha", rule, self.choose_alpha)
            require(not self.calibrate, "calibrate", rule, self.calibrate)
        rule = "must be used with data for one direction"
        is_one = not directions_of(metadata.task_options)
        require(is_one or not self.robustness, "robustness", rule, f"{data.data_dir}, with several")
        rule = "must have a validation split in data_dir"
        for name in ("choose_alpha", "calibrate"):
            is_possible = CHOOSING_SPLIT in metadata.splits or not getattr(self, name)
            require(is_possible, name, rule, ", ".join(metadata.splits))

    def check_alpha(self, alpha: float | None) -> None:
        """Raises an InputError if a length penalty is given, and is to be chosen."""
        is_free = not self.choose_alpha or alpha is None
        require(is_free, "alpha", "must not be given with choose_alpha", alpha)


def evaluate_on(
    data: DataSet,
    translator: "Translator",
    config: EvaluationConfig | None = None,
    model_dir: str | os.PathLike | None = None,
    notes: Mapping[str, Any] | None = None,
    started: float | None = None,
) -> dict[str, Any]:
    """Scores a model on a split: BLEU and chrF of its translations, and perplexity.

    A parsing model gets EVALB's labelled bracket F1 instead of BLEU. With several directions, BLEU
    and chrF are means, and "directions" has those of each.

    Args:
        data: prepared data, with the model's vocabulary.
        translator: the model, from keras_transformer.load.
        config: what to score; EvaluationConfig(), the test split, by default.
        model_dir: the model directory that stores the results, if all sentences were translated.
            None to store none.
        notes: further entries for the results, such as restrictions on translations.
        started: the time.monotonic() from which "seconds" is counted; that of the call by default.

    Returns:
        The scores, as from keras_transformer.use.evaluate.evaluate.evaluate, with {"split",
        "data_dir", "dataset", "languages", "seconds"} and the notes. With config.robustness, also
        {"robustness": as from keras_transformer.use.evaluate.robustness.robustness}. With
        config.choose_alpha, the scores use the chosen length penalty, {"chosen": the fields of
        ChosenDecoding} is added, and `model_dir` stores it, if all sentences were translated.
        config.calibrate does the same with {"calibrated": as from evaluation.calibration}.

    Raises:
        InputError: if the data does not match the model, or cannot be used.
    """
    from keras_transformer.use.evaluate.evaluate import evaluate
    from keras_transformer.use.evaluate.robustness import robustness

    started = time.monotonic() if started is None else started
    config = EvaluationConfig() if config is None else config
    config.check(data)
    _check_same_data(data, translator.card)
    _check_positions(data, config.split, translator.card)
    chosen = None
    if config.choose_alpha:
        chosen = _choose_decoding(data, translator, config)
        translator = translator.with_alpha(chosen.alpha)
        if model_dir is not None and config.limit is None:
            write_chosen_decoding(model_dir, chosen)
            if chosen.checkpoint.startswith("average:") and "," not in chosen.checkpoint:
                choose_checkpoint(model_dir, chosen.checkpoint)
    calibrated = None
    if config.calibrate:
        calibration, calibrated = _calibrate(data, translator, config)
        translator = translator.with_calibration(calibration)
        if model_dir is not None and config.limit is None:
            write_calibration(model_dir, calibration)
    sources, references, directions = _text_of(data, config.split, config.limit)
    if sources == references:
        message = "source and target of %s in %s are identical"
        logging.warning(message, config.split, data.data_dir)
    _check_directions(data, directions, translator.card)
    score_answers = None
    if data.metadata.task == "parsing":
        from keras_transformer.kit.parsing.parseval import parsing_scores

        trees = data.trees(config.split)[: config.limit]

        def score_answers(best):
            return parsing_scores([answer.tree for answer in best], trees)

    batches = data.evaluation_batches(config.split, translator.config.batch_tokens)
    with data.damage_named():
        scores, answers = evaluate(
            translator,
            (sources, references),
            batches,
            score_answers,
            language=data.metadata.languages[1] or "de",
            tokenize=config.tokenize or "13a",
            lowercase=config.lowercase,
            directions=directions,
        )
    if config.robustness:
        scores["robustness"] = robustness(
            translator,
            sources,
            references,
            plain=scores,
            tokenize=config.tokenize or "13a",
            lowercase=config.lowercase,
        )
    if config.output is not None:
        write_lines(config.output, answers)
    results = {
        **scores,
        **({} if chosen is None else {"chosen": dataclasses.asdict(chosen)}),
        **({} if calibrated is None else {"calibrated": calibrated}),
        "split": config.split,
        "data_dir": os.fspath(data.data_dir),
        "dataset": data.metadata.settings.get("--dataset"),
        "languages": data.metadata.languages,
        "engine": translator.engine.name,
        **(notes or {}),
        "seconds": round(time.monotonic() - started, 3),
    }
    if model_dir is not None and config.limit is None:
        write_results(model_dir, config.split, results)
    return results


def _calibrate(
    data: DataSet, translator: "Translator", config: EvaluationConfig
) -> tuple[Calibration, dict[str, Any]]:
    """Fits the confidence in translations to the validation split; also returns its quality."""
    from keras_transformer.use.evaluate.calibration import LEAST_SENTENCES, calibrate

    sources, references, _ = _text_of(data, CHOOSING_SPLIT, config.limit)
    rule = f"must be used with a validation split of {LEAST_SENTENCES} sentences or more"
    require(len(sources) >= LEAST_SENTENCES, "calibrate", rule, len(sources))
    return calibrate(translator, sources, references)


def _choose_decoding(
    data: DataSet, translator: "Translator", config: EvaluationConfig
) -> ChosenDecoding:
    """Finds the best length penalty on the validation split."""
    from keras_transformer.use.evaluate.length_penalty import bleu_by_alpha, safest_alpha

    sources, references, directions = _text_of(data, CHOOSING_SPLIT, config.limit)
    scores = bleu_by_alpha(
        translator,
        sources,
        references,
        config.tokenize or "13a",
        config.lowercase,
        directions,
    )
    alpha = safest_alpha(scores)
    return ChosenDecoding(
        alpha=alpha,
        beam_size=translator.config.beam_size,
        bleu=scores[alpha],
        split=CHOOSING_SPLIT,
        checkpoint=translator.checkpoint["checkpoint"],
        bleu_by_alpha={str(alpha): bleu for alpha, bleu in scores.items()},
    )


def _check_same_data(data: DataSet, card: ModelCard) -> None:
    """Raises InputError if a model was trained with another vocabulary or task."""
    metadata, data_dir = data.metadata, data.data_dir
    model = card.description
    same_target = metadata.fingerprint == model.vocabulary_fingerprint
    same_source = metadata.source_fingerprint == model.source_vocabulary_fingerprint
    rule = "must have the vocabulary of the model"
    received = f"{data_dir}, which has another. Choose the training data"
    require(same_target and same_source, "data_dir", rule, received)
    rule = f"must be prepared for the model's task, {model.task}"
    require(metadata.task == model.task, "data_dir", rule, f"{data_dir}, for {metadata.task}")
    has_codes = bool(target_languages_of(metadata.task_options))
    needs_codes = bool(target_languages_of(model.task_options))
    rule = "must be prepared with target language codes if and only if the model uses them"
    received = f"{data_dir}, {'with' if has_codes else 'without'} codes"
    require(has_codes == needs_codes, "data_dir", rule, received)
    has_codes = bool(source_languages_of(metadata.task_options))
    needs_codes = bool(source_languages_of(model.task_options))
    rule = "must be prepared with source_codes if and only if the model reads them"
    received = f"{data_dir}, {'with' if has_codes else 'without'} them"
    require(has_codes == needs_codes, "data_dir", rule, received)


def _check_positions(data: DataSet, split: str, card: ModelCard) -> None:
    """Raises InputError if a split has sentences longer than a model's learned positions."""
    most, longest = card.config.longest_text, data.split(split).longest
    rule = f"must have sentences of at most {most} ids, the model's max_positions"
    require(most is None or longest <= most, split, rule, longest, data.data_dir)


def _check_directions(data: DataSet, directions: Sequence[str] | None, card: ModelCard) -> None:
    """Raises InputError for a direction that a model is known not to be trained for."""
    trained = [str(direction) for direction in directions_of(card.description.task_options)]
    for direction in dict.fromkeys(directions or ()):
        rule = f"must have only the model's directions: {', '.join(trained)}"
        received = f"{direction} in {data.data_dir}"
        require(not trained or direction in trained, "data_dir", rule, received)


def _text_of(
    data: DataSet, split: str, limit: int | None
) -> tuple[list[str], list[str], list[str] | None]:
    """Returns the first `limit` sources of each direction, their references and directions.

    With a single direction, the last is None.
    """
    sources, references = data.text(split)
    directions = data.directions(split)
    if directions is None:
        return sources[:limit], references[:limit], None
    counts = Counter()
    kept = []
    for row, direction in enumerate(directions):
        counts[direction] += 1
        if limit is None or counts[direction] <= limit:
            kept.append(row)
    sources, references, directions = (
        [rows[row] for row in kept] for rows in (sources, references, directions)
    )
    return sources, references, directions
