"""`keras_transformer.load`: one translator for whatever holds a trained model."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.config import TASKS, DecodingConfig, SamplingConfig
from keras_transformer.decoding.ensemble import AnyModel, Ensemble
from keras_transformer.decoding.inference_model import InferenceTransformer, inference_model
from keras_transformer.decoding.int8 import require_int8
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import InputError, reason, require
from keras_transformer.export.model_card import CARD, DECODING, describe, read_card, refuse_fixed
from keras_transformer.export.saved_model import load_graphs, numbers
from keras_transformer.fields import from_json
from keras_transformer.files import to_path
from keras_transformer.training.checkpoints import build_model, read_variables, restore_model
from keras_transformer.training.model_directory import described_in, read_description
from keras_transformer.vocabulary.pair import VocabularyPair


class TrainedModel(NamedTuple):
    """A model in this process, with all that is needed to use it."""

    model: AnyModel  # of the layout of training
    vocabularies: VocabularyPair
    facts: dict[str, Any]  # what its weights are: {"checkpoint", "step", ...}
    about: dict[str, Any]  # as of model_card.describe, or only the task and its options


def load(
    path: str | os.PathLike | Sequence[str | os.PathLike],
    checkpoint: str | None = None,
    beam_size: int | None = None,
    alpha: float | None = None,
    batch_tokens: int | None = None,
    n_best: int | None = None,
    sampling: SamplingConfig | None = None,
    min_length: int | None = None,
    no_repeat_ngram_size: int | None = None,
    forbidden_phrases: Sequence[str] | None = None,
    mbr: str | None = None,
) -> Translator:
    """Loads a trained model, to translate and score texts, and to see its attention.

    Args:
        path: a model directory (bin/train.py), a checkpoint in one, an export (bin/export.py
            --format=saved_model), or a .keras file with its vocabulary beside it. A config.json of
            a model directory beside a .keras file says what it was trained for. Several are an
            ensemble, for which exports are their models, without their settings.
        checkpoint: of a model directory, or of each: "latest", "best" (in validation), "average:K"
            (the mean of the last K), or a checkpoint's path; or several, separated by commas, of
            which it is the mean. The latest if not given.
        beam_size, alpha: of the search (section 6.1). If not given, those of the model's task.
        batch_tokens: padded source tokens that are translated at once.
        n_best: how many of the `beam_size` translations must be the best; with fewer of them, the
            search ends sooner. All if not given.
        sampling: draws translations at random in place of the best.
        min_length: fewest subwords of a translation, EOS counted.
        no_repeat_ngram_size: no translation has an n-gram of so many subwords twice.
        forbidden_phrases: what no translation contains, in the subwords that the vocabulary cuts
            each phrase into where it begins a text or follows a space.
        mbr: "chrf" or "bleu" ranks the `beam_size` translations, or draws, of a text by this
            utility (minimum Bayes risk); all of them are searched, whatever `n_best` is.

    Returns:
        A Translator; of a parsing model, a Parser, which answers with trees.

    Raises:
        InputError: where there is no such model, or it cannot be used so.
    """
    single = isinstance(path, str | os.PathLike)
    settings = {
        "beam_size": beam_size,
        "alpha": alpha,
        "batch_tokens": batch_tokens,
        "sampling": sampling,
        "min_length": min_length,
        "no_repeat_ngram_size": no_repeat_ngram_size,
        "forbidden_phrases": None if forbidden_phrases is None else tuple(forbidden_phrases),
    }
    # A damaged export may have lost one of them.
    of_export = ("saved_model.pb", "assets.extra")
    if single and any((to_path(path) / name).exists() for name in of_export):
        path = to_path(path)
        refuse_fixed({"checkpoint": checkpoint, **settings})
        card = read_card(path)
        if card.get("weights") == "int8":
            require_int8("--saved_model of int8 weights")
        kept = {name: card[name] for name in DECODING}
        config = from_json(DecodingConfig, {**kept, "n_best": n_best, "mbr": mbr}, path / CARD)
        graphs, model_config = load_graphs(path), TransformerConfig(**card["config"])
    else:
        trained = restore(path, checkpoint)
        config = decoding_config(trained, n_best=n_best, mbr=mbr, **settings)
        if trained.about["task"] == "parsing" and n_best != 1:
            # As an export has it: the answers that repair chooses among are certain, or the first.
            config = dataclasses.replace(config, n_best=None)
        facts = numbers(trained.model, trained.vocabularies, config)
        card = {**trained.facts, **trained.about, **facts}
        model = inference_model(trained.model)
        graphs, model_config = text_graphs(model, trained.vocabularies, config), model.config
    rule = "--mbr must be asked of a translation model"
    require(mbr is None or card["task"] == "translation", rule, f"{mbr}, of a parsing model")
    of_task = Parser if card["task"] == "parsing" else Translator
    return of_task(graphs, config, model_config, card)


def decoding_config(trained: TrainedModel, **settings) -> DecodingConfig:
    """How a model's task is decoded, sources cut as in training; settings of None do not count."""
    task = trained.about["task"]
    trained_with = trained.about.get("data", {}).get("max_length", DecodingConfig.max_source_length)
    longest = max(trained_with, TASKS[task].max_source_length)
    given = {name: value for name, value in settings.items() if value is not None}
    return dataclasses.replace(TASKS[task], max_source_length=longest, **given)


def restore(
    path: str | os.PathLike | Sequence[str | os.PathLike], checkpoint: str | None = None
) -> TrainedModel:
    """Reads the model of what `load` reads, with arguments as there; it has float32 weights."""
    if not isinstance(path, str | os.PathLike):
        return restore(*path, checkpoint) if len(path) == 1 else _restore_ensemble(path, checkpoint)
    path, folder = to_path(path), described_in(path)
    rule = "--checkpoint goes with a model directory only"
    require(folder == path or checkpoint is None, rule, f"{checkpoint} of {path}")
    if (path / CARD).exists():
        return _restore_export(path)
    if path.suffix == ".keras":
        return _restore_keras_file(path)
    if folder != path:
        path, checkpoint = folder, path.name
    description = read_description(path)
    vocabularies = VocabularyPair.load(path)
    for name, fingerprint in vocabularies.fingerprints.items():
        rule = f"{path}: {name} must be that of the model's training"
        require(fingerprint == getattr(description, name), rule, fingerprint)
    checkpoint = "latest" if checkpoint is None else checkpoint
    model, info = restore_model(path, checkpoint, description)
    facts = info.to_json()
    return TrainedModel(model, vocabularies, facts, describe(path, facts))


def _restore_export(path: Path) -> TrainedModel:
    card = read_card(path)
    kind = "an ensemble" if "ensemble" in card else card.get("weights")
    require(kind in ("float32", "bfloat16"), f"{path} must hold float weights of one model", kind)
    vocabularies = VocabularyPair.load((path / CARD).parent)
    rule = f"{path / CARD} must be of the vocabulary beside it"
    require(vocabularies.fingerprints.items() <= card.items(), rule, "another")
    weights = read_variables(f"{path}/variables/variables", "weights")
    config = TransformerConfig(**card["config"])
    model = build_model(config, weights, str(path / CARD), str(path), InferenceTransformer)
    return TrainedModel(model.training_model(), vocabularies, {"checkpoint": path.name}, card)


def _restore_ensemble(paths: Sequence[str | os.PathLike], checkpoint: str | None) -> TrainedModel:
    trained = [restore(path, checkpoint) for path in paths]
    for path, one in zip(paths, trained, strict=True):
        rule = f"a model of an ensemble must have the vocabularies and the task of {paths[0]}"
        kinds = [(m.vocabularies.fingerprints, m.about["task_options"]) for m in (one, trained[0])]
        require(kinds[0] == kinds[1], rule, f"{path}, which has others")
    names = " + ".join(one.facts["checkpoint"] for one in trained)
    facts = {"checkpoint": names, "ensemble": [one.facts for one in trained]}
    model, about = Ensemble([one.model for one in trained]), trained[0].about
    return trained[0]._replace(model=model, facts=facts, about=about | {"evaluation": None})


def _restore_keras_file(path: Path) -> TrainedModel:
    try:
        model = keras.models.load_model(path, compile=False)
    except Exception as error:  # damaged bytes can end in any
        rule = "a .keras file must be a Transformer that was saved with model.save"
        raise InputError(f"{rule}. Received: {path}: {reason(error)}") from None
    folder, facts = path.parent, {"checkpoint": path.name}
    vocabularies = VocabularyPair.load(folder)
    about = {"task": "translation", "task_options": {}}
    if (folder / "config.json").exists():
        about = describe(folder, facts)
    config = model.config
    sizes = (config.source_vocab_size or config.vocab_size, config.vocab_size)
    for vocabulary, size in zip(vocabularies, sizes, strict=True):
        rule = f"{vocabulary.file} must have the {size} subwords of the model"
        require(vocabulary.vocab_size == size, rule, vocabulary.vocab_size)
    return TrainedModel(model, vocabularies, facts, about)
