"""Texts in, answers out: what a model does, as graphs that take text or ids and give tensors.

A Translator calls them in the process that holds the model, and an export holds the same ones as
its signatures (export/saved_model.py). Graphs of texts take string [B] and give a dict of tensors
whose first axis is B, from 0 to any number; one text, string [], is a batch of one. Texts are
UTF-8, and those longer than the limits of DecodingConfig are cut there. They are made of graphs of
ids, int32 [B, S] and [B, T], each row ending in EOS and then padding: one batch. A Translator cuts
texts into ids and makes batches of similar length by itself, and calls graphs of ids only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID, UNK_ID
from keras_transformer.decoding.answers import TRANSLATION_OUTPUTS
from keras_transformer.decoding.attention_maps import AttentionMaps, alignment, attention_maps
from keras_transformer.decoding.compiled_model import CompiledModel, decode, encode, in_graph
from keras_transformer.decoding.config import DecodingConfig, SearchSettings
from keras_transformer.decoding.search import (
    encode_text,
    mean_logits,
    search_ids,
    search_ids_greedily,
    target_log_probs,
    token_log_probs,
    with_eos,
)
from keras_transformer.decoding.sentence_graph import (
    in_parts,
    lines_and_sentences,
    surrounded,
)
from keras_transformer.decoding.shortlist import Shortlist
from keras_transformer.errors import require
from keras_transformer.vocabulary.pair import VocabularyPair
from keras_transformer.vocabulary.subwords import Subwords

# A row counts as at least this many tokens of a batch: however short, its beams take memory.
MIN_ROW_TOKENS = 32
# The outputs of `explain` that `align` and `attention` have.
SUBWORD_OUTPUTS = ("source_pieces", "target_pieces", "alignment")
ALIGN_OUTPUTS = (*SUBWORD_OUTPUTS, "source_words", "target_words", "log_probs")
ATTENTION_OUTPUTS = (*SUBWORD_OUTPUTS, *AttentionMaps._fields)

TEXTS = tf.TensorSpec([None], tf.string)
IDS = tf.TensorSpec([None, None], tf.int32)
PHRASES = tf.TensorSpec([None, None, None], tf.int32)
NUMBER = tf.TensorSpec([], tf.int32)

Tensors = dict[str, tf.Tensor]


def graph(*signature: tf.TensorSpec) -> Callable:
    """Makes a method a graph, which is traced when it is first called.

    There is nothing for AutoGraph to convert, and looking would take it as long as all the tracing.
    """
    return tf.function(input_signature=signature, autograph=False)


class Graphs(Mapping[str, Callable[..., Tensors]]):
    """The graphs of a model, or of an ensemble of models with the same vocabularies, by name.

    Args:
        models: one model, or those of an ensemble, whose probabilities are averaged.
        vocabularies: of the source and the target.
        options: of the search.
        shortlist: of the tokens that translations consist of, for a single model; all if not given.
        constraints: whether there are the graphs of required phrases, which are further searches.

    Raises:
        InputError: if a forbidden phrase has no subwords.
    """

    def __init__(
        self,
        models: Sequence[CompiledModel],
        vocabularies: VocabularyPair,
        options: DecodingConfig,
        shortlist: Shortlist | None = None,
        constraints: bool = True,
    ):
        self._models = tuple(models)
        self._vocabularies = vocabularies
        self._options = options
        self._shortlist = shortlist
        self._settings = SearchSettings(options, _forbidden_ids(options, vocabularies.target))
        limits = [options.limits(model.config) for model in self._models]
        self._source_limit = min(limit.source for limit in limits)
        self._target_limit = min(limit.target for limit in limits)

        self._graphs = {
            "serving_default": self.serving_default,
            "best": self.best,
            "beams": self.beams,
            "n_best": self.n_best,
            "complete": self.complete,
            "document": self.document,
            "score": self.score,
            "align": self.align,
            "tokenize": self.tokenize,
            "encode_source": self.encode_source,
            "encode_target": self.encode_target,
            "search_ids": self.search_ids,
            "score_ids": self.score_ids,
            "align_ids": self.align_ids,
        }
        if options.is_greedy:
            self._graphs["greedy_ids"] = self.greedy_ids
        if constraints and options.sampling is None:
            self._graphs["constrain"] = self.constrain
            self._graphs["constrain_ids"] = self.constrain_ids
        if len(self._models) == 1:  # the models of an ensemble may have different heads
            self._graphs["attention"] = self.attention

    def with_options(self, options: DecodingConfig) -> "Graphs":
        """The graphs of the same model for another search."""
        constraints = "constrain" in self._graphs
        return Graphs(self._models, self._vocabularies, options, self._shortlist, constraints)

    # TensorFlow keeps the graphs of an object by its hash, which mappings do not have.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getitem__(self, name: str) -> Callable[..., Tensors]:
        return self._graphs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._graphs)

    def __len__(self) -> int:
        return len(self._graphs)

    # Graphs of ids.

    @graph(IDS, IDS, NUMBER)
    def search_ids(self, source, target_prefix, n_best) -> Tensors:
        """Translates a batch.

        Args:
            source: int32 [B, S].
            target_prefix: int32 [B, P], padded, without EOS, P at least 1: what each translation
                begins with.
            n_best: int32 scalar, how many of the translations must be the best ones.

        Returns:
            translation string [B, K], best first; score float32 [B, K], log-probability / length
            penalty; log_prob float32 [B, K], natural logarithm; length int32 [B, K], subwords with
            EOS; unfinished bool [B, K], whether the translation reached its length limit before
            EOS; ids int32 [B, K, T], padded. Where there are fewer than K translations, "" with
            score -inf follows. An empty source, EOS alone, has the translation "" with score 0.
        """
        return self._search(source, target_prefix, n_best, None)

    @graph(IDS, IDS)
    def greedy_ids(self, source, target_prefix) -> Tensors:
        """Does what `search_ids` does where there is one beam, without scores.

        Returns:
            translation, length, unfinished and ids as of `search_ids`; is_finite bool [B, 1], False
            where logits are NaN, as those of weights that are not finite.
        """
        source, target_prefix, _ = of_one_batch(source, target_prefix)
        models = [in_graph(model) for model in self._models]
        best = search_ids_greedily(models, source, self._settings, target_prefix, self._shortlist)
        return {**self._texts(best.ids, best.lengths), "is_finite": best.is_finite}

    @graph(IDS, IDS, PHRASES, NUMBER)
    def constrain_ids(self, source, target_prefix, phrases, n_best) -> Tensors:
        """Does what `search_ids` does with required phrases.

        Args:
            phrases: int32 [B, P, M], padded, without EOS: what each translation contains. Where
                there is no room for all of them, translations with most of them come first.
        """
        return self._search(source, target_prefix, n_best, phrases)

    @graph(IDS, IDS)
    def score_ids(self, source, target) -> Tensors:
        """Scores given targets: log_prob float32 [B], natural logarithm, EOS included."""
        source, target, _ = of_one_batch(source, target)
        models = [in_graph(model) for model in self._models]
        log_probs = target_log_probs(models, source, target)
        return {"log_prob": tf.reduce_sum(log_probs, axis=1)}

    @graph(IDS, IDS)
    def explain_ids(self, source, target) -> Tensors:
        """Shows how probable each subword of a target is, and what predicting it attends to.

        Returns:
            source_pieces string [B, S], target_pieces string [B, T], EOS included; source_words
            and target_words int32 of the same shapes, the number of the word that each belongs to,
            of those with spaces between them; log_probs float32 [B, T], natural logarithm, 0 at
            padding; alignment int32 [B, T], a source position for each target token; and the
            fields of AttentionMaps of the only, or first, model.
        """
        source, target, _ = of_one_batch(source, target)
        encoded, decoded = [], []
        for stored_model in self._models:
            model = in_graph(stored_model)
            encoded.append(encode(model, source))
            decoded.append(decode(model, encoded[-1], target))
        maps = [attention_maps(*each) for each in zip(encoded, decoded, strict=True)]
        logits = mean_logits([each.logits for each in decoded])
        vocabularies = self._vocabularies
        return {
            "source_pieces": pieces(source, vocabularies.source),
            "target_pieces": pieces(target, vocabularies.target),
            "source_words": vocabularies.source.words_tensor(source),
            "target_words": vocabularies.target.words_tensor(target),
            "log_probs": token_log_probs(logits, target),
            "alignment": alignment([each.memory for each in maps], encoded[0].mask),
            **maps[0]._asdict(),
        }

    @graph(IDS, IDS)
    def align_ids(self, source, target) -> Tensors:
        """Shows how probable each subword of a target is, and where it comes from.

        Returns:
            source_pieces, target_pieces, source_words, target_words, log_probs and alignment as of
            `explain_ids`.
        """
        explained = self.explain_ids(source, target)
        return {name: explained[name] for name in ALIGN_OUTPUTS}

    # Graphs that cut texts into ids.

    @graph(TEXTS)
    def encode_source(self, text) -> Tensors:
        """Cuts sources into subwords.

        Returns:
            ids int32 [N], the ids of all texts one after the other, without EOS; length int32 [B],
            the number of ids of each text; unknown bool [B], whether a text has characters that
            the vocabulary lacks.
        """
        return _flat_ids(self._vocabularies.source, text)

    @graph(TEXTS)
    def encode_target(self, text) -> Tensors:
        """Does what `encode_source` does with the target's vocabulary."""
        return _flat_ids(self._vocabularies.target, text)

    @graph(TEXTS)
    def tokenize(self, text) -> Tensors:
        """Shows what the model reads of each source, EOS included.

        Returns:
            ids int32 [B, S]; length int32 [B]; pieces string [B, S], as the vocabulary spells them.
        """
        vocabulary = self._vocabularies.source
        rows = with_eos(encode_text(vocabulary, text), self._source_limit)
        ids, length = padded(rows), tf.cast(rows.row_lengths(), tf.int32)
        return {"ids": ids, "length": length, "pieces": pieces(ids, vocabulary)}

    # Graphs of texts.

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
        """Does what `n_best` does, and ends as soon as the best translation is certain."""
        return self._translate(text, tf.fill(tf.shape(text), ""), None, n_best=1)

    @graph(TEXTS)
    def n_best(self, text) -> Tensors:
        """Finds the best K translations of each text; K is the number of beams.

        Returns:
            translation string [B, K], best first; score float32 [B, K], log-probability / length
            penalty; log_prob float32 [B, K]; length int32 [B, K], subwords with EOS; unfinished
            bool [B, K], whether the translation reached its length limit before EOS; truncated bool
            [B], whether the text was longer than the limit and cut. Where there are fewer than K
            translations, "" with score -inf follows; a blank text has the translation "" with
            score 0.
        """
        return self._translate(text, tf.fill(tf.shape(text), ""), None, self._options.exact)

    @graph(TEXTS, TEXTS)
    def complete(self, source, target) -> Tensors:
        """Does what `n_best` does; each translation begins with its target, "" for anything."""
        return self._translate(source, target, None, self._options.exact)

    @graph(TEXTS, TEXTS, TEXTS)
    def constrain(self, source, target, phrases) -> Tensors:
        """Does what `complete` does; each translation contains its phrases, with tabs between them.

        Where there is no room for all of them, translations with most of them come first.
        """
        return self._translate(source, target, phrases, self._options.exact)

    @graph(TEXTS)
    def document(self, text) -> Tensors:
        """Translates texts of any length, whose lines are paragraphs of any number of sentences.

        Returns:
            translation string [B], with as many lines, and spaces and signs before items where the
            text has them. A sentence without letters stays as it is. What is longer than the model
            reads is cut, and the translations of its parts have spaces between them. A code at the
            beginning of a text is that of all of its sentences.
        """
        vocabulary = self._vocabularies.source
        codes, limit = None, self._source_limit - 1  # without EOS
        # Before the patterns, which match no invalid bytes.
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        if vocabulary.languages:
            codes, text = vocabulary.split_codes(text)  # [B, None]
            limit -= 1
        sentences = lines_and_sentences(text)  # [B, None, None]
        before, texts, after = surrounded(sentences.flat_values)  # [N] each
        ids = encode_text(vocabulary, texts)
        begins_word = ids.with_flat_values(vocabulary.begins_word_tensor(ids.flat_values))
        parts = in_parts(ids, begins_word, limit)  # [N, None, None]
        rows = parts.values if codes is None else _with_codes_of(codes, sentences, parts)
        source_ids = with_eos(rows, self._source_limit)
        found = tf.strings.regex_replace(self._best_texts(source_ids), "[\r\n]", " ")
        joined = tf.strings.reduce_join(parts.with_values(found), axis=1, separator=" ")  # [N]
        whole = tf.strings.join([before, joined, after])
        lines = tf.strings.reduce_join(sentences.with_flat_values(whole), axis=2)
        # A separator would be left out after empty lines at the beginning.
        ended = lines.with_values(tf.strings.join([lines.values, "\n"]))
        joined = tf.strings.reduce_join(ended, axis=1)
        return {"translation": tf.strings.regex_replace(joined, "\n$", "")}

    @graph(TEXTS, TEXTS)
    def score(self, source, target) -> Tensors:
        """Computes how probable the model finds each target as a translation of its source.

        Returns:
            log_prob float32 [B], natural logarithm, EOS included; length int32 [B], subwords of
            the target with EOS; perplexity float32 [B], exp(-log_prob / length); truncated bool
            [B], whether source or target was longer than the limit and cut.
        """
        source_ids, target_ids, source_cut, target_cut = self._encode_pairs(source, target)
        batch_tokens = self._options.batch_tokens
        log_prob = in_batches(self.score_ids, batch_tokens, source_ids, target_ids)["log_prob"]
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
        """Does what `align_ids` does with texts, all of them in one batch."""
        source_ids, target_ids, *_ = self._encode_pairs(source, target)
        return self.align_ids(padded(source_ids), padded(target_ids))

    @graph(TEXTS, TEXTS)
    def attention(self, source, target) -> Tensors:
        """The attention weights of all heads for pairs of texts, all of them in one batch."""
        source_ids, target_ids, *_ = self._encode_pairs(source, target)
        explained = self.explain_ids(padded(source_ids), padded(target_ids))
        return {name: explained[name] for name in ATTENTION_OUTPUTS}

    # What they have in common.

    def _search(self, source, target_prefix, n_best, phrases) -> Tensors:
        source, target_prefix, phrases = of_one_batch(source, target_prefix, phrases)
        best = search_ids(
            [in_graph(model) for model in self._models],
            source,
            self._settings,
            target_prefix,
            self._shortlist,
            phrases,
            n_best,
        )
        return {
            **self._texts(best.ids, best.lengths),
            "score": best.scores,
            "log_prob": best.log_probs,
        }

    def _texts(self, ids: tf.Tensor, lengths: tf.Tensor) -> Tensors:
        """The outputs of a search that are made of ids, int32 [B, K, T], and lengths [B, K]."""
        batch, beams, length = tf.unstack(tf.shape(ids))
        rows = tf.reshape(ids, [batch * beams, length])  # [B K, T], T may be 0
        texts = self._vocabularies.target.decode_tensor(rows)
        has_eos = tf.reduce_any(ids == EOS_ID, axis=2)  # [B, K]
        return {
            "translation": tf.reshape(texts, [-1, self._options.beam_size]),
            "length": lengths,
            "unfinished": (lengths > 0) & ~has_eos,
            "ids": ids,
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
        """Translates rows of ids in batches: the TRANSLATION_OUTPUTS of `search_ids`."""
        rows = [source_ids, prefix] if phrases is None else [source_ids, prefix, phrases]

        def translate_batch(source, prefix, phrases=None):
            prefix = tf.pad(prefix, [[0, 0], [0, 1]], constant_values=PAD_ID)  # P is at least 1
            if phrases is None:
                found = self.search_ids(source, prefix, n_best)
            else:
                found = self.constrain_ids(source, prefix, phrases, n_best)
            return {name: found[name] for name in TRANSLATION_OUTPUTS}

        return in_batches(translate_batch, self._options.batch_tokens, *rows)

    def _best_texts(self, source_ids: tf.RaggedTensor) -> tf.Tensor:
        """The best translations of rows of ids, without scores: string [B]."""
        if not self._options.is_greedy:
            no_prefix = source_ids[:, :0]
            return self._translate_ids(source_ids, no_prefix, None, n_best=1)["translation"][:, 0]

        def translate_batch(source):
            no_prefix = tf.fill([tf.shape(source)[0], 1], PAD_ID)
            return {"translation": self.greedy_ids(source, no_prefix)["translation"]}

        found = in_batches(translate_batch, self._options.batch_tokens, source_ids)
        return found["translation"][:, 0]

    def _encode_pairs(
        self, source, target
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor, tf.Tensor]:
        """The ids of both, with EOS, cut at the limits; bool [B] each, whether they were cut."""
        source, target, _ = of_one_batch(source, target)
        source_ids = encode_text(self._vocabularies.source, source)
        target_ids = encode_text(self._vocabularies.target, target)
        source_cut = source_ids.row_lengths() > self._source_limit - 1
        target_cut = target_ids.row_lengths() > self._target_limit - 1
        source_ids = with_eos(source_ids, self._source_limit)
        target_ids = with_eos(target_ids, self._target_limit)
        return source_ids, target_ids, source_cut, target_cut

    def _encode_phrases(self, phrases) -> tf.RaggedTensor:
        """string [B], with tabs between phrases -> ids int32 [B, None, None], without EOS."""
        rows = tf.strings.split(phrases, "\t")  # [B, None]
        ids = encode_text(self._vocabularies.target, tf.strings.strip(rows.flat_values))
        return rows.with_flat_values(ids[:, : self._target_limit])


def _with_codes_of(
    codes: tf.RaggedTensor, sentences: tf.RaggedTensor, parts: tf.RaggedTensor
) -> tf.RaggedTensor:
    """Puts the codes of texts before the parts of their sentences that are not blank.

    Args:
        codes: int32 [B, None], the id of each text's code; none for a text without one.
        sentences: string [B, None, None], the lines of texts, and their sentences: N together.
        parts: int32 [N, None, None], the ids of the parts of each sentence: P together.

    Returns:
        int32 [P, None].
    """
    of_line = sentences.value_rowids()
    of_sentence = tf.gather(of_line, sentences.values.value_rowids())
    of_part = tf.gather(of_sentence, parts.value_rowids())  # [P], the text that each belongs to
    rows = parts.values
    found = tf.gather(codes, of_part)
    is_blank = tf.gather(rows.row_lengths() == 0, found.value_rowids())
    kept = tf.ragged.boolean_mask(found, found.with_values(~is_blank))
    return tf.concat([kept, rows], axis=1)


def of_one_batch(
    source: tf.Tensor, target: tf.Tensor, phrases: tf.Tensor | None = None
) -> list[tf.Tensor | None]:
    """Returns the inputs of a graph as they are, [B, ...], after a check that B is the same."""
    checks = []
    for rows, what in ((target, "a target"), (phrases, "phrases")):
        if rows is not None:
            rule = f"there must be {what} for every source"
            same = tf.debugging.assert_equal(batch_size(source), batch_size(rows), message=rule)
            checks.append(same)
    with tf.control_dependencies([check for check in checks if check is not None]):
        return [rows if rows is None else tf.identity(rows) for rows in (source, target, phrases)]


def batch_size(rows: tf.Tensor) -> tf.Tensor:
    """The number of texts or rows of ids, int32 scalar; a signature may be called with one text."""
    return tf.size(rows) if rows.dtype == tf.string else tf.shape(rows)[0]


def _forbidden_ids(options: DecodingConfig, vocabulary: Subwords) -> tuple[tuple[int, ...], ...]:
    """The ids of the forbidden phrases."""
    if not options.forbidden_phrases:
        return ()
    ids = vocabulary.encode_tensor(tf.constant(options.forbidden_phrases)).to_list()
    rule = "must have a subword in each phrase"
    require(all(ids), "forbidden_phrases", rule, options.forbidden_phrases)
    return tuple(tuple(phrase) for phrase in ids)


def _flat_ids(vocabulary: Subwords, text: tf.Tensor) -> Tensors:
    ids = encode_text(vocabulary, text)
    return {
        "ids": ids.flat_values,
        "length": tf.cast(ids.row_lengths(), tf.int32),
        "unknown": tf.reduce_any(ids == UNK_ID, axis=1),
    }


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
