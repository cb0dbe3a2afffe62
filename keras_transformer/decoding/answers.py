"""Texts in, answers out: what a model does, as graphs that take text and give tensors.

A Translator calls them in the process that holds the model, and an export holds the same ones as
its signatures (export/saved_model). Each takes string [B], B from 0 to any number, and gives a dict
of tensors whose first axis is B. Texts are UTF-8; those longer than the limits of `DecodingConfig`
are cut there. Its `batch_tokens` bounds the memory, but for `attention` and `align`: all in one.
"""

import contextlib
import inspect
from collections.abc import Callable

import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID, UNK_ID
from keras_transformer.decoding.attention_maps import AttentionMaps, alignment, attention_maps
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.ensemble import AnyModel, Ensemble, log_mean, log_probs
from keras_transformer.decoding.inference import encode_text, search_ids, target_log_probs
from keras_transformer.decoding.shortlist import Shortlist
from keras_transformer.errors import require
from keras_transformer.model.masks import padding_mask
from keras_transformer.vocabulary.pair import VocabularyPair
from keras_transformer.vocabulary.subwords import Subwords

# A row counts as at least this many tokens of a batch: however short, its beams take memory.
MIN_ROW_TOKENS = 32
# The outputs of `n_best` that are of one translation each.
OF_TRANSLATIONS = ("translation", "score", "log_prob", "length")
# The outputs of `explain` that `align` and `attention` have.
OF_SUBWORDS = ("source_pieces", "target_pieces", "alignment")
OF_ALIGNMENT = (*OF_SUBWORDS, "source_words", "target_words", "log_probs")
OF_ATTENTION = (*OF_SUBWORDS, *AttentionMaps._fields)

Tensors = dict[str, tf.Tensor]


def text_graphs(
    model: AnyModel,
    vocabularies: VocabularyPair,
    config: DecodingConfig,
    reading_weights: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext,
    shortlist: Shortlist | None = None,
) -> dict[str, Callable[..., Tensors]]:
    """Makes the graphs of a model; each is traced when it is first called.

    `reading_weights` makes a context in which the model's layers read other weights than their
    variables (export/saved_model). With a `shortlist`, translations consist of its tokens.

    Returns:
        The signatures of export/saved_model by name; without "attention" for an ensemble.
    """
    strings, ids = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.int32)

    def graph(answer, *specs):  # of texts, if there are none
        def answer_inputs(*inputs):
            with reading_weights():
                return answer(*inputs)

        answer_inputs.__signature__ = inspect.signature(answer)  # whose names those of inputs are
        specs = specs or [strings] * len(answer_inputs.__signature__.parameters)
        return tf.function(answer_inputs, specs, autograph=False)

    answers = Answers(model, vocabularies, config, shortlist)
    # One graph of all searches, and one of each pass: an export holds them once.
    search = graph(
        lambda source, target, n_best: answers.n_best(source, target, n_best=n_best),
        *(strings, strings, tf.TensorSpec([], tf.int32)),
    )
    score_ids = graph(answers.score_ids, ids, ids)
    explain = graph(answers.explain, ids, ids)
    exact = config.search().n_best or config.beam_size

    def begun_by_nothing(text, n_best):
        return search(text, tf.fill(tf.shape(text), ""), n_best)

    # Ends as soon as the best translation is certain.
    beams = graph(lambda text: begun_by_nothing(text, 1))

    def explained(names, *specs):
        def answer(source, target):
            if not specs:  # texts: all pairs in one batch
                source, target = map(padded, answers.encode_pairs(source, target)[:2])
            found = explain(source, target)
            return {name: found[name] for name in names}

        return graph(answer, *specs)

    def best(text):
        found = beams(text)
        first = {name: found[name][:, 0] for name in OF_TRANSLATIONS}
        return {**first, "truncated": found["truncated"]}

    def serving_default(text):
        found = best(text)
        return {name: found[name] for name in ("translation", "score")}

    attention = {} if isinstance(model, Ensemble) else {"attention": explained(OF_ATTENTION)}
    return {
        "serving_default": graph(serving_default),
        "best": graph(best),
        "beams": beams,
        "n_best": graph(lambda text: begun_by_nothing(text, exact)),
        "complete": graph(lambda source, target: search(source, target, exact)),
        "constrain": graph(lambda source, target, phrases: answers.n_best(source, target, phrases)),
        "score": graph(lambda source, target: answers.score(source, target, score_ids)),
        "score_ids": score_ids,
        "align": explained(OF_ALIGNMENT),
        "align_ids": explained(OF_ALIGNMENT, ids, ids),
        "lengths": graph(lambda text: answers.lengths(text, vocabularies.source)),
        "target_lengths": graph(lambda text: answers.lengths(text, vocabularies.target)),
        "tokenize": graph(answers.tokenize),
        **attention,
    }


class Answers:
    """What a model answers to texts, by the operations of its graphs; see `text_graphs`."""

    def __init__(
        self,
        model: AnyModel,
        vocabularies: VocabularyPair,
        config: DecodingConfig,
        shortlist: Shortlist | None = None,
    ):
        self.model, self.vocabularies, self.config = model, vocabularies, config
        self.shortlist = shortlist
        self.forbidden: tuple[tuple[int, ...], ...] = ()
        if config.forbidden_phrases:
            phrases = vocabularies.target.encode_tensor(tf.constant(config.forbidden_phrases))
            self.forbidden = tuple(map(tuple, phrases.to_list()))
        rule = "--forbidden_phrases must have a subword in each phrase"
        require(all(self.forbidden), rule, config.forbidden_phrases)
        self.source_limit, self.target_limit = config.limits(model.config)

    def n_best(self, text: tf.Tensor, prefixes: tf.Tensor, phrases=None, n_best=None) -> Tensors:
        """Translates texts; translations begin with their prefixes, string [B].

        Where there are phrases, string [B], with tabs between those of a text, translations
        contain them, as subwords; where there is no room for all, those with most come first.
        `n_best` is that of search_ids.

        Returns:
            translation string [B, K], best first; score float32 [B, K], log-probability / length
            penalty; log_prob float32 [B, K]; length int32 [B, K], subwords with EOS; ids int32
            [B, K, T], padded; truncated bool [B], whether the text was cut. A text with fewer than
            K translations has "" with score -inf in their place; a blank text has "" with score 0.
        """
        target, beam_size = self.vocabularies.target, self.config.beam_size
        # A space at the end would be a subword: "a " does not begin "a dog".
        ids, prefix, truncated = self.encode_pairs(text, tf.strings.strip(prefixes))
        inputs = [ids, prefix[:, :-1]]  # without EOS
        if phrases is not None:
            rows = tf.strings.split(phrases, "\t")  # [B, None]
            ids, _ = encode_text(target, tf.strings.strip(rows.flat_values), self.target_limit)
            inputs.append(rows.with_flat_values(ids))  # [B, None, None]

        def translate_batch(source, prefix, required=None):
            prefix = tf.pad(prefix, [[0, 0], [0, 1]], constant_values=PAD_ID)  # P is at least 1
            required = () if required is None else (tf.where(required == EOS_ID, PAD_ID, required),)
            of_search = (self.config, prefix, self.shortlist, self.forbidden, required, n_best)
            best = search_ids(self.model, source, *of_search)
            batch, beams, length = tf.unstack(tf.shape(best.ids))
            rows = tf.reshape(best.ids, [batch * beams, length])  # [B K, T], T may be 0
            texts = tf.reshape(target.decode_tensor(rows), [-1, beam_size])
            columns = (texts, best.scores, best.log_probs, best.lengths)  # [B, K] each
            ids = tf.pad(best.ids, [[0, 0], [0, 0], [0, self.target_limit - length]])
            ids = tf.ensure_shape(ids, [None, beam_size, self.target_limit])
            return {**dict(zip(OF_TRANSLATIONS, columns, strict=True)), "ids": ids}

        found = in_batches(translate_batch, self.config.batch_tokens, *inputs)
        longest = tf.reduce_max(tf.concat([[1], tf.reshape(found["length"], [-1])], axis=0))
        return {**found, "ids": found["ids"][:, :, :longest], "truncated": truncated}

    def score(self, source: tf.Tensor, target: tf.Tensor, score_ids: Callable) -> Tensors:
        """Computes how probable the model finds each target as a translation of its source.

        `score_ids` is the graph of the method, which an export then holds once.

        Returns:
            log_prob float32 [B], natural logarithm, EOS included; length int32 [B], subwords of
            the target with EOS; perplexity float32 [B], exp(-log_prob / length).
        """
        source, target, _ = self.encode_pairs(source, target)
        log_prob = in_batches(score_ids, self.config.batch_tokens, source, target)["log_prob"]
        length = tf.cast(target.row_lengths(), tf.int32)
        perplexity = tf.exp(-log_prob / tf.cast(length, tf.float32))
        return {"log_prob": log_prob, "length": length, "perplexity": perplexity}

    def score_ids(self, source: tf.Tensor, target: tf.Tensor) -> Tensors:
        """As `score`, log_prob float32 [B] of ids, int32 [B, S] and [B, T], padded: one batch."""
        found = target_log_probs(self.model, source, target)
        return {"log_prob": tf.reduce_sum(found, axis=1)}

    def explain(self, source: tf.Tensor, target: tf.Tensor) -> Tensors:
        """Shows how probable each subword of a target is, and what predicting it attends to.

        `source` and `target` are int32 [B, S] and [B, T], padded: one batch.

        Returns:
            source_pieces string [B, S], target_pieces string [B, T], EOS included; source_words
            and target_words int32 of the same shapes, the number of the word that each belongs to,
            of those with spaces between them; log_probs float32 [B, T], natural logarithm, 0 at
            padding; alignment int32 [B, T], a source position for each target token; and the
            fields of AttentionMaps of the only, or first, model.
        """
        read, written = self.vocabularies
        models = self.model.models if isinstance(self.model, Ensemble) else [self.model]
        maps, logits = zip(*[attention_maps(m, source, target) for m in models], strict=True)
        return {
            "source_pieces": pieces(source, read),
            "target_pieces": pieces(target, written),
            "source_words": read.words_tensor(source),
            "target_words": written.words_tensor(target),
            "log_probs": log_probs(log_mean(logits), target),
            "alignment": alignment([each.memory for each in maps], padding_mask(source)),
            **maps[0]._asdict(),
        }

    def lengths(self, text: tf.Tensor, vocabulary: Subwords) -> Tensors:
        """Counts the subwords, EOS included, before a cut: length int32 [B]; unknown bool [B]."""
        ids, _ = encode_text(vocabulary, text, tf.int32.max)
        unknown = tf.reduce_any(ids == UNK_ID, axis=1)  # what the vocabulary lacks
        return {"length": tf.cast(ids.row_lengths(), tf.int32), "unknown": unknown}

    def tokenize(self, text: tf.Tensor) -> Tensors:
        """Shows what the model reads of each source, EOS included.

        Returns:
            ids int32 [B, S]; length int32 [B]; pieces string [B, S], as the vocabulary spells them.
        """
        rows, _ = encode_text(self.vocabularies.source, text, self.source_limit)
        ids, length = padded(rows), tf.cast(rows.row_lengths(), tf.int32)
        return {"ids": ids, "length": length, "pieces": pieces(ids, self.vocabularies.source)}

    def encode_pairs(self, source, target) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
        """The ids of both, with EOS, and bool [B], whether the source was cut."""
        rule = "there must be a target for every source"
        same = tf.debugging.assert_equal(tf.size(source), tf.size(target), message=rule)
        with tf.control_dependencies([] if same is None else [same]):
            source, cut = encode_text(self.vocabularies.source, source, self.source_limit)
            target, _ = encode_text(self.vocabularies.target, target, self.target_limit)
        return source, target, cut


def pieces(ids: tf.Tensor, vocabulary: Subwords) -> tf.Tensor:
    """Spells ids int32 [B, S]: string [B, S], "</s>" for EOS and "" for padding."""
    spelled = tf.where(ids == EOS_ID, "</s>", vocabulary.pieces_tensor(ids))
    return tf.where(ids == PAD_ID, "", spelled)


def padded(ids: tf.RaggedTensor) -> tf.Tensor:
    """Makes int32 [B, longest] of ids, with one column at least."""
    longest = tf.reduce_max(tf.concat([[1], ids.row_lengths()], axis=0))
    return ids.to_tensor(PAD_ID, shape=tf.stack([-1, longest]))


def in_batches(
    function: Callable[..., Tensors], batch_tokens: int, *ids: tf.RaggedTensor
) -> Tensors:
    """Applies a function to rows of ids in batches of similar length, the longest rows first.

    Args:
        function: maps int32 [b, length], padded, one tensor for each of `ids`, to tensors [b, ...]
            whose other axes are of fixed sizes. A row's results may not depend on the others.
        batch_tokens: bounds rows x longest of a batch, except for a row longer itself.
        ids: int32 [B, None, ...] each; what is returned is [B, ...] in the order of their rows.
    """
    specs = [tf.TensorSpec([None] * rows.shape.rank, tf.int32) for rows in ids]
    function = tf.function(function, specs, autograph=False).get_concrete_function()
    lengths = tf.reduce_max([rows.row_lengths() for rows in ids], axis=0)
    lengths = tf.cast(lengths, tf.int32)  # [B]
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    total = tf.size(order)

    def advance(start, results):
        longest = tf.maximum(lengths[order[start]], MIN_ROW_TOKENS)
        batch = order[start : start + tf.maximum(batch_tokens // longest, 1)]  # [b]
        found = function(*[tf.gather(rows, batch).to_tensor(PAD_ID) for rows in ids])
        results = {
            name: tf.tensor_scatter_nd_update(results[name], batch[:, None], found[name])
            for name in results
        }
        return start + tf.size(batch), results

    results = {
        name: tf.zeros([total, *tensor.shape[1:]], tensor.dtype)
        for name, tensor in function.structured_outputs.items()
    }
    # One after the other, as several at once would take the memory of several.
    _, results = tf.while_loop(
        lambda start, _: start < total, advance, [0, results], parallel_iterations=1
    )
    return results
