"""Small models with random weights, and shortcuts to search and translate with them."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.core.config import EOS_ID, PAD_ID, UNK_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search import search_loop
from keras_transformer.core.search.beam_search import BeamSearch
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.config import DecodingConfig, SearchSettings
from keras_transformer.core.search.constraints import constrained_search
from keras_transformer.core.search.engines.graphs import SearchGraphs, token_log_probs
from keras_transformer.core.search.engines.tensorflow_engine import TensorFlowEngine
from keras_transformer.core.search.ensemble import decode_target, ensemble_of
from keras_transformer.core.search.greedy_search import GreedySearch
from keras_transformer.core.search.sampling import Sampling
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.documents.text_translator import TextTranslator
from keras_transformer.use.store.decoding import search_settings
from tests.given_answers import card_of

VOCAB_SIZE = 132


class Characters(Subwords):
    """ASCII characters as subwords, with ids from 4; all others are unknown."""

    languages = ()
    term_ids = ()
    fingerprint = "characters"
    vocab_size = VOCAB_SIZE
    pieces = ("", "", "</s>", "?", *map(chr, range(128)))

    def __init__(self):
        pass

    def encode(self, texts, threads=1):
        return [[ord(char) + 4 if ord(char) < 128 else UNK_ID for char in text] for text in texts]

    def decode(self, rows):
        until_eos = [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in rows]
        return ["".join(chr(id_ - 4) for id_ in row if id_ >= 4) for row in until_eos]

    def words(self, row):
        return [len(self.decode([row[: end + 1]])[0].split()) - 1 for end in range(len(row))]


def small_model(seed=1, scale=2.0, **settings):
    """Makes a model with random weights, scaled up so that its probabilities are peaked."""
    keras.utils.set_random_seed(seed)
    sizes = {"vocab_size": VOCAB_SIZE, "num_layers": 2, "d_model": 16, "d_ff": 16, "num_heads": 2}
    model = Transformer(TransformerConfig(**{**sizes, "dropout": 0.3, **settings}))
    for variable in model.trainable_variables:
        variable.assign(variable * scale)
    return model


def padded(rows):
    """Pads lists of ids: int32 [B, longest]."""
    ids = np.full([len(rows), max(map(len, rows))], PAD_ID, "int32")
    for row, values in zip(ids, rows, strict=True):
        row[: len(values)] = values
    return tf.constant(ids)


def settings_of(beam_size=4, alpha=0.6, forbidden=(), **options):
    """Makes SearchSettings from fields of DecodingConfig."""
    return SearchSettings(DecodingConfig(beam_size, alpha, **options), forbidden)


def strategy_of(settings):
    """Makes the strategy of a search without phrases, with scores."""
    options = settings.options
    if options.sampling is not None:
        return Sampling(settings, options.alpha)
    return BeamSearch(settings, options.guaranteed, options.alpha)


def search(models, source, settings, target_prefix=None, phrases=None):
    """Runs beam search with a Keras model, or with an ensemble: a list of them."""
    model = compiled(models)
    return search_compiled(model, source, settings, target_prefix, phrases)


def search_compiled(model, source, settings, target_prefix=None, phrases=None):
    """Runs beam search with a CompiledModel or an Ensemble."""
    cache = model.start(source, settings.options.beam_size)
    strategy = strategy_of(settings)
    lengths, first = SearchGraphs(model, settings)._max_lengths(cache), model.first_inputs(source)
    if phrases is None:
        return search_loop.search(model.step, cache, lengths, strategy, target_prefix, first=first)
    return constrained_search(
        model.step, cache, lengths, strategy, phrases, target_prefix, first=first
    )


def search_compiled_greedily(model, source, settings, target_prefix=None):
    """Runs greedy search with a CompiledModel or an Ensemble."""
    cache = model.start(source, beams=1)
    lengths = SearchGraphs(model, settings)._max_lengths(cache)
    strategy, first = GreedySearch(settings), model.first_inputs(source)
    return search_loop.search(
        model.scaled_step, cache, lengths, strategy, target_prefix, first=first
    )


def log_probs_of(models, source, target):
    """Computes log-probabilities of target tokens with a Keras model or a list of them."""
    return log_probs_of_compiled(compiled(models), source, target)


def log_probs_of_compiled(model, source, target):
    """Computes log-probabilities of target tokens with a CompiledModel or an Ensemble."""
    logits, _ = decode_target(model, source, target)
    return token_log_probs(logits, target)


def compiled(models):
    """Compiles a Keras model, or a list of them as an ensemble, for searches."""
    return ensemble_of(list(map(compile_model, as_list(models))))


def as_list(models):
    return models if isinstance(models, list) else [models]


def engine_of(models, vocabularies, options):
    """Makes an engine for a Keras model, or for an ensemble: a list of them."""
    settings = search_settings(options, vocabularies.target)
    return TensorFlowEngine(SearchGraphs(compiled(models), settings))


def translator_with(models, vocabularies, options, **facts):
    """Makes a translator for a Keras model, or for an ensemble: a list of them."""
    models = as_list(models)
    engine = engine_of(models, vocabularies, options)
    ensemble = (CheckpointInfo("step-7", 7),) * len(models) if len(models) > 1 else ()
    card = card_of(models[0].config, options, ensemble=ensemble, **facts)
    return TextTranslator(engine, vocabularies, card)


class Cache(NamedTuple):
    """A cache for step functions in tests: any nested structures of tensors."""

    per_beam: Any = ()  # [B, K, ...], rows of hypotheses, reordered with them
    per_sentence: Any = ()  # [B, ...], shared by a sentence's hypotheses

    def reordered(self, parents):
        def reorder(part):
            return tf.gather(part, parents, batch_dims=1)

        return self._replace(per_beam=tf.nest.map_structure(reorder, self.per_beam))

    def with_room(self, capacity):
        return self
