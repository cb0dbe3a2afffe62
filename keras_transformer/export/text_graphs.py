"""Texts in, texts out, inside a graph: an export's functions for users with TensorFlow alone.

The graphs take string [B] and return a dict of tensors whose first axis is B, which may be 0; one
text, string [], is a batch of one. Texts are UTF-8, and are truncated to the limits in the options.
They call the graphs on ids from search/tensorflow_engine.py, in batches of similar length. In a
process with this package, a Translator does the same in Python.
"""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID
from keras_transformer.export.graph_vocabulary import GraphVocabulary
from keras_transformer.export.sentence_graph import in_parts, lines_and_sentences, surrounded
from keras_transformer.search.tensorflow_engine import SearchGraphs, Tensors, graph
from keras_transformer.translate.batches import MIN_ROW_TOKENS
from keras_transformer.vocabulary.pair import VocabularyPair

TEXTS = tf.TensorSpec([None], tf.string)
# The outputs for each translation.
TRANSLATION_OUTPUTS = ("translation", "score", "log_prob", "length", "unfinished")


class TextGraphs:
    """The graphs on texts, by name in `named`.

    Args:
        graphs: the graphs on ids.
        vocabularies: the source and target vocabularies.

    Attributes:
        vocabularies: their graph versions, whose tables a SavedModel must track. Tracking this
            object instead would save all graphs, whatever the signatures.
    """

    def __init__(self, graphs: SearchGraphs, vocabularies: VocabularyPair):
        self._graphs = graphs
        self._options = graphs.settings.options
        self._source = GraphVocabulary(vocabularies.source)
        self._target = self._source
        if vocabularies.own_source is not None:
            self._target = GraphVocabulary(vocabularies.target)
        self.vocabularies = [self._source, self._target]
        self._source_limit, self._target_limit = graphs.limits.source, graphs.limits.target
        self.named: dict[str, Callable[..., Tensors]] = {
            "serving_default": self.serving_default,
            "best": self.best,
            "beams": self.beams,
            "n_best": self.n_best,
            "complete": self.complete,
            "document": self.document,
            "score": self.score,
            "align": self.align,
            "tokenize": self.tokenize,
        }
        if "constrain_ids" in graphs.named:
            self.named["constrain"] = self.constrain
        if "attention_ids" in graphs.named:
            self.named["attention"] = self.attention

    @graph(TEXTS)
    def serving_default(self, text) -> Tensors:
        """The best translation string [B], its score float32 [B], and truncated bool [B]."""
        best = self.best(text)
        return {name: best[name] for name in ("translation", "score", "truncated")}

    @graph(TEXTS)
    def best(self, text) -> Tensors:
        """The first translation of `beams`: each output is [B]."""
        found = self.beams(text)
        outputs = {name: found[name][:, 0] for name in TRANSLATION_OUTPUTS}
        return {**outputs, "truncated": found["truncated"]}

    @graph(TEXTS)
    def beams(self, text) -> Tensors:
        """Like `n_best`, but ends as soon as the best translation is certain."""
        return self._translate(text, tf.fill(tf.shape(text), ""), None, n_best=1)

    @graph(TEXTS)
    def n_best(self, text) -> Tensors:
        """Finds the K best translations of each text; K is the number of beams.

        Returns:
            translation string [B, K], best first; score float32 [B, K], log probability / length
            penalty; log_prob float32 [B, K]; length int32 [B, K], subwords with EOS; unfinished
            bool [B, K], whether the translation reached its length limit before EOS; truncated bool
            [B], whether the text was truncated. Missing translations are "" with score -inf; a
            blank text has the translation "" with score 0.
        """
        return self._translate(text, tf.fill(tf.shape(text), ""), None, self._options.exact)

    @graph(TEXTS, TEXTS)
    def complete(self, source, target) -> Tensors:
        """Like `n_best`; each translation begins with its target, which may be ""."""
        return self._translate(source, target, None, self._options.exact)

    @graph(TEXTS, TEXTS, TEXTS)
    def constrain(self, source, target, phrases) -> Tensors:
        """Like `complete`; each translation contains its phrases, which are separated by tabs.

        If there is no room for all of them, translations with most of them come first.
        """
        return self._translate(source, target, phrases, self._options.exact)

    @graph(TEXTS)
    def document(self, text) -> Tensors:
        """Translates texts of any length, whose lines are paragraphs of any number of sentences.

        Returns:
            translation string [B], with the same number of lines, spaces and list markers as the
            text. A sentence without letters stays unchanged. Sentences beyond the model's limit are
            split, and the translations of their parts joined by spaces. A code at the beginning of
            a text applies to all of its sentences.
        """
        vocabulary = self._source
        codes, limit = None, self._source_limit - 1  # without EOS
        # Before the patterns, which do not match invalid bytes.
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        if vocabulary.languages:
            codes, text = vocabulary.split_codes(text)  # [B, None]
            limit -= 1
        sentences = lines_and_sentences(text)  # [B, None, None]
        before, texts, after = surrounded(sentences.flat_values)  # [N] each
        ids = vocabulary.encode(texts)
        begins_word = ids.with_flat_values(vocabulary.begins_word(ids.flat_values))
        parts = in_parts(ids, begins_word, limit)  # [N, None, None]
        rows = parts.values if codes is None else _with_codes_of(codes, sentences, parts)
        source_ids = with_eos(rows, self._source_limit)
        found = tf.strings.regex_replace(self._best_texts(source_ids), "[\r\n]", " ")
        joined = tf.strings.reduce_join(parts.with_values(found), axis=1, separator=" ")  # [N]
        whole = tf.strings.join([before, joined, after])
        lines = tf.strings.reduce_join(sentences.with_flat_values(whole), axis=2)
        # A separator argument would be omitted after leading empty lines.
        ended = lines.with_values(tf.strings.join([lines.values, "\n"]))
        joined = tf.strings.reduce_join(ended, axis=1)
        return {"translation": tf.strings.regex_replace(joined, "\n$", "")}

    @graph(TEXTS, TEXTS)
    def score(self, source, target) -> Tensors:
        """Computes the probability of each target as a translation of its source.

        Returns:
            log_prob float32 [B], natural logarithm, EOS included; length int32 [B], subwords of the
            target with EOS; perplexity float32 [B], exp(-log_prob / length); truncated bool [B],
            whether source or target was truncated.
        """
        source_ids, target_ids, source_cut, target_cut = self._encode_pairs(source, target)
        found = in_batches(
            self._graphs.score_ids, self._options.batch_tokens, source_ids, target_ids
        )
        log_prob = found["log_prob"]
        length = tf.cast(target_ids.row_lengths(), tf.int32)
        perplexity = tf.exp(-log_prob / tf.cast(length, tf.float32))
        return {
            "log_prob": log_prob,
            "length": length,
            "perplexity": perplexity,
            "truncated": source_cut | target_cut,
        }

    @graph(TEXTS, TEXTS)
    def align(self, source, target) -> Tensors:
        """Aligns targets with their sources, all of them in one batch.

        Returns:
            source_pieces string [B, S], target_pieces string [B, T], EOS included; source_words and
            target_words int32 in the same shapes, the number of each subword's word, words being
            separated by spaces; log_probs float32 [B, T], each subword's log probability (natural),
            0 at padding; alignment int32 [B, T], a source position for each target subword.
        """
        source_ids, target_ids, *_ = self._encode_pairs(source, target)
        source, target = padded(source_ids), padded(target_ids)
        return {**self._subwords(source, target), **self._graphs.align_ids(source, target)}

    @graph(TEXTS, TEXTS)
    def attention(self, source, target) -> Tensors:
        """The attention weights of all heads for pairs of texts, all of them in one batch."""
        source_ids, target_ids, *_ = self._encode_pairs(source, target)
        source, target = padded(source_ids), padded(target_ids)
        found = self._graphs.attention_ids(source, target)
        del found["log_probs"]
        pieces = self._subwords(source, target)
        return {**found, **{name: pieces[name] for name in ("source_pieces", "target_pieces")}}

    @graph(TEXTS)
    def tokenize(self, text) -> Tensors:
        """Returns the subwords that the model reads for each source, EOS included.

        Returns:
            ids int32 [B, S]; length int32 [B]; pieces string [B, S], as in the vocabulary.
        """
        rows = with_eos(self._source.encode(text), self._source_limit)
        ids, length = padded(rows), tf.cast(rows.row_lengths(), tf.int32)
        return {"ids": ids, "length": length, "pieces": self._source.spelled(ids)}

    def _texts(self, ids: tf.Tensor) -> tf.Tensor:
        """Decodes ids, int32 [B, K, T]: string [B, K]."""
        batch, beams, length = tf.unstack(tf.shape(ids))
        rows = tf.reshape(ids, [batch * beams, length])  # [B K, T], T may be 0
        return tf.reshape(self._target.decode(rows), [-1, self._options.beam_size])

    def _subwords(self, source: tf.Tensor, target: tf.Tensor) -> Tensors:
        """Returns the subwords of pairs, and the numbers of their words."""
        return {
            "source_pieces": self._source.spelled(source),
            "target_pieces": self._target.spelled(target),
            "source_words": self._source.words(source),
            "target_words": self._target.words(target),
        }

    def _translate(self, source, target, phrases, n_best: int) -> Tensors:
        """Translates texts in batches; see `n_best`, `complete` and `constrain`."""
        source, target, phrases = of_one_batch(source, target, phrases)
        # A space at the end would be a subword: "a " does not begin "a dog".
        source_ids, prefix, truncated, _ = self._encode_pairs(source, tf.strings.strip(target))
        if phrases is not None:
            phrases = self._encode_phrases(phrases)
        prefix = prefix[:, :-1]  # without EOS
        return {
            **self._translate_ids(source_ids, prefix, phrases, n_best),
            "truncated": truncated,
        }

    def _translate_ids(self, source_ids, prefix, phrases, n_best: int) -> Tensors:
        """Translates rows of ids in batches: the TRANSLATION_OUTPUTS."""
        rows = [source_ids, prefix] if phrases is None else [source_ids, prefix, phrases]
        alpha = self._options.alpha

        def translate_batch(source, prefix, phrases=None):
            prefix = tf.pad(prefix, [[0, 0], [0, 1]], constant_values=PAD_ID)  # P is at least 1
            if phrases is None:
                found = self._graphs.search_ids(source, prefix, n_best, alpha)
            else:
                found = self._graphs.constrain_ids(source, prefix, phrases, n_best, alpha)
            return {
                "translation": self._texts(found["ids"]),
                "score": found["score"],
                "log_prob": found["log_prob"],
                "length": found["length"],
                "unfinished": _unfinished(found),
            }

        return in_batches(translate_batch, self._options.batch_tokens, *rows)

    def _best_texts(self, source_ids: tf.RaggedTensor) -> tf.Tensor:
        """Returns the best translations of rows of ids, without scores: string [B]."""
        if not self._options.is_greedy:
            no_prefix = source_ids[:, :0]
            return self._translate_ids(source_ids, no_prefix, None, n_best=1)["translation"][:, 0]

        def translate_batch(source):
            no_prefix = tf.fill([tf.shape(source)[0], 1], PAD_ID)
            return {"translation": self._texts(self._graphs.greedy_ids(source, no_prefix)["ids"])}

        found = in_batches(translate_batch, self._options.batch_tokens, source_ids)
        return found["translation"][:, 0]

    def _encode_pairs(
        self, source, target
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor, tf.Tensor]:
        """Encodes both with EOS, truncated to the limits; bool [B] each, whether truncated."""
        source, target, _ = of_one_batch(source, target)
        source_ids = self._source.encode(source)
        target_ids = self._target.encode(target)
        source_cut = source_ids.row_lengths() > self._source_limit - 1
        target_cut = target_ids.row_lengths() > self._target_limit - 1
        source_ids = with_eos(source_ids, self._source_limit)
        target_ids = with_eos(target_ids, self._target_limit)
        return source_ids, target_ids, source_cut, target_cut

    def _encode_phrases(self, phrases) -> tf.RaggedTensor:
        """string [B], phrases separated by tabs -> ids int32 [B, None, None], without EOS."""
        rows = tf.strings.split(phrases, "\t")  # [B, None]
        ids = self._target.encode(tf.strings.strip(rows.flat_values))
        return rows.with_flat_values(ids[:, : self._target_limit])


def _unfinished(found: Tensors) -> tf.Tensor:
    """Whether a translation reached its length limit before EOS: bool [B, K]."""
    has_eos = tf.reduce_any(found["ids"] == EOS_ID, axis=2)
    return (found["length"] > 0) & ~has_eos


def with_eos(ids: tf.RaggedTensor, limit: int) -> tf.RaggedTensor:
    """Truncates rows of ids, int32 [B, None], to `limit` including EOS, and appends EOS."""
    ends = tf.fill([ids.nrows(), 1], EOS_ID)
    return tf.concat([ids[:, : limit - 1], ends], axis=1)


def _with_codes_of(
    codes: tf.RaggedTensor, sentences: tf.RaggedTensor, parts: tf.RaggedTensor
) -> tf.RaggedTensor:
    """Prepends each text's code to the non-blank parts of its sentences.

    Args:
        codes: int32 [B, None], the id of each text's code; empty for a text without one.
        sentences: string [B, None, None], the lines of texts, and their N sentences.
        parts: int32 [N, None, None], the ids of the P parts of the sentences.

    Returns:
        int32 [P, None].
    """
    of_line = sentences.value_rowids()
    of_sentence = tf.gather(of_line, sentences.values.value_rowids())
    of_part = tf.gather(of_sentence, parts.value_rowids())  # [P], the text of each part
    rows = parts.values
    found = tf.gather(codes, of_part)
    is_blank = tf.gather(rows.row_lengths() == 0, found.value_rowids())
    kept = tf.ragged.boolean_mask(found, found.with_values(~is_blank))
    return tf.concat([kept, rows], axis=1)


def of_one_batch(
    source: tf.Tensor, target: tf.Tensor, phrases: tf.Tensor | None = None
) -> list[tf.Tensor | None]:
    """Returns the inputs of a graph, [B, ...], after checking that they have the same B."""
    checks = []
    for rows, what in ((target, "a target"), (phrases, "phrases")):
        if rows is not None:
            rule = f"there must be {what} for every source"
            same = tf.debugging.assert_equal(batch_size(source), batch_size(rows), message=rule)
            checks.append(same)
    with tf.control_dependencies([check for check in checks if check is not None]):
        return [rows if rows is None else tf.identity(rows) for rows in (source, target, phrases)]


def batch_size(rows: tf.Tensor) -> tf.Tensor:
    """Returns the number of texts or rows of ids, int32 scalar; a signature also takes one text."""
    return tf.size(rows) if rows.dtype == tf.string else tf.shape(rows)[0]


def padded(ids: tf.RaggedTensor) -> tf.Tensor:
    """Pads ids to int32 [B, longest], with at least one column."""
    longest = tf.reduce_max(tf.concat([[1], ids.row_lengths()], axis=0))
    return ids.to_tensor(PAD_ID, shape=tf.stack([-1, longest]))


def in_batches(
    function: Callable[..., Tensors], batch_tokens: int, *ids: tf.RaggedTensor
) -> Tensors:
    """Applies a function to rows of ids in batches of similar length, the longest rows first.

    Args:
        function: maps int32 [b, length], padded, one tensor for each of `ids`, to tensors [b, ...]
            whose other axes have fixed sizes. A row's results must not depend on the others.
        batch_tokens: limit on rows x longest length in a batch, except for a single longer row.
        ids: int32 [B, None, ...] each; the results are [B, ...] in the order of the rows.
    """
    specs = [tf.TensorSpec([None] * rows.shape.rank, tf.int32) for rows in ids]
    function = tf.function(function, specs, autograph=False).get_concrete_function()
    lengths = tf.reduce_max([rows.row_lengths() for rows in ids], axis=0)
    lengths = tf.cast(lengths, tf.int32)  # [B]
    order = tf.argsort(lengths, direction="DESCENDING")
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
    # One after another, as parallel batches would multiply the memory.
    _, results = tf.while_loop(
        lambda start, _: start < total, advance, [0, results], parallel_iterations=1
    )
    return results
