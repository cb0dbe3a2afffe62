"""CTranslate2 shares no code with this library: if both agree, both are right."""

import dataclasses
import json

import ctranslate2
import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.core.config import EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer, shift_right
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.model_directory import describe_unknown_training
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange.ctranslate2 import arrays_of, export_ctranslate2
from keras_transformer.use.store.card import ModelCard, read_card
from pipelines.prepare.vocabulary import learn_subwords
from tests.refusals import refused

FACTS = CheckpointInfo("step-00000007", step=7)
# Sources consist of 10 words; each word has two translations, one four times as likely.
WORDS = 10
SOURCE, TARGET, SYNONYM = 4, 4 + WORDS, 4 + 2 * WORDS
VOCAB_SIZE = 4 + 3 * WORDS
TOKENS = ["[PAD]", "[BOS]", "[EOS]", "[UNK]", *(f"w{i}" for i in range(4, VOCAB_SIZE))]
LONGEST = 6
# Each row has several options; together they have all.
OPTIONS = {
    "narrow keys, biases": {"d_k": 3, "attention_bias": True, "logits_bias": True},
    "narrow values, untied, Marian's positions": {
        **{"d_v": 5, "tie_embeddings": False, "logits_bias": True, "positions": "marian"},
        **{"activation": "swish", "decoder_layers": 1, "starts_with_zeros": True},
    },
    "wide heads, gelu, pre-norm, M2M-100's positions": {
        **{"d_k": 12, "d_v": 13, "activation": "gelu", "norm": "pre", "positions": "m2m100"},
        "norm_epsilon": 0.1,
    },
    "unscaled embeddings, learned positions, large epsilon": {
        **{"scale_embeddings": False, "positions": "learned", "max_positions": 64},
        "norm_epsilon": 0.1,
    },
    "rotary positions, narrow values, SwiGLU": {
        **{"positions": "rotary", "d_v": 5, "activation": "swiglu", "encoder_reads_eos": False},
    },
}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    file = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    file.write_text("".join(f"{token}\n" for token in TOKENS))
    return VocabularyPair(*[Subwords(file)] * 2)


def make_pairs(count, seed):
    """Draws sources and their translations in reverse order, int32 [count, LONGEST + 1] each."""
    rng = np.random.default_rng(seed)
    source, target = np.full((2, count, LONGEST + 1), PAD_ID, np.int32)
    for row, reverse in zip(source, target, strict=True):
        words = rng.integers(WORDS, size=rng.integers(2, LONGEST + 1))
        likely = np.where(rng.random(len(words)) < 0.8, TARGET, SYNONYM)
        row[: len(words) + 1] = [*(SOURCE + words), EOS_ID]
        reverse[: len(words) + 1] = [*(likely + words)[::-1], EOS_ID]
    return source, target


def exported(model, vocabulary, tmp_path_factory, **settings):
    folder = tmp_path_factory.mktemp("export") / "model"
    export_ctranslate2(model, vocabulary, folder, card_of(model))
    return ctranslate2.Translator(str(folder), intra_threads=1, **settings)


def card_of(model):
    """Makes the card of a model about which little is known."""
    fingerprints = {"vocabulary_fingerprint": "0123"}
    return ModelCard(
        describe_unknown_training(model.config, fingerprints),
        DecodingConfig(),
        parameters=model.count_params(),
        checkpoint=FACTS,
    )


def words_of(ids):
    """Returns CTranslate2's input: tokens without EOS and padding."""
    return [[TOKENS[i] for i in row if i not in (PAD_ID, EOS_ID)] for row in ids]


def assert_same_log_probs(model, translator, source, target, source_words=None):
    source_ids, target_ids = tf.constant(source), tf.constant(target)
    logits = model({"source": source_ids, "target": shift_right(target_ids)})
    log_probs = tf.gather(tf.nn.log_softmax(logits), target, batch_dims=2).numpy()
    ours = [row[ids != PAD_ID] for row, ids in zip(log_probs, target, strict=True)]
    scores = translator.score_batch(
        source_words or words_of(source), words_of(target), max_input_length=0
    )
    for row, theirs in zip(ours, scores, strict=True):
        np.testing.assert_allclose(row, theirs.log_probs, atol=1e-3)


def perturb(model):
    """Changes all weights from their initial values, biases included."""
    for variable in model.trainable_variables:
        variable.assign(variable * 1.5 + 0.1 * keras.random.normal(variable.shape))


@pytest.mark.parametrize("options", OPTIONS)
def test_options_of_the_configuration(options, vocabulary, tmp_path_factory):
    config = TransformerConfig(VOCAB_SIZE, 2, 16, 24, 2, **OPTIONS[options])
    model = Transformer(config)
    perturb(model)
    pairs = make_pairs(20, seed=5)
    translator = exported(model, vocabulary, tmp_path_factory)
    assert_same_log_probs(model, translator, *pairs)


@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_each_side_has_its_vocabulary(tie_embeddings, vocabulary, tmp_path):
    source_tokens = [*TOKENS[:SOURCE], *(f"s{i}" for i in range(WORDS))]
    for side, tokens in (("source", source_tokens), ("target", TOKENS)):
        (tmp_path / f"{side}_vocabulary.txt").write_text("".join(f"{t}\n" for t in tokens))
    sizes = {"source_vocab_size": SOURCE + WORDS, "tie_embeddings": tie_embeddings}
    model = Transformer(TransformerConfig(VOCAB_SIZE, 1, 16, 24, 2, **sizes))
    perturb(model)
    folder = tmp_path / "model"
    export_ctranslate2(model, VocabularyPair.load(tmp_path), folder, card_of(model))
    names = ("source_vocabulary", "target_vocabulary")
    found = [json.loads((folder / f"{name}.json").read_text()) for name in names]
    assert found == [source_tokens, TOKENS] and not (folder / "shared_vocabulary.json").exists()
    copies = [(folder / f"{name}.txt").read_bytes() for name in names]
    assert copies == [(tmp_path / f"{name}.txt").read_bytes() for name in names]
    source, target = make_pairs(20, seed=5)
    source_words = [[source_tokens[i] for i in row if i not in (PAD_ID, EOS_ID)] for row in source]
    translator = ctranslate2.Translator(str(folder), intra_threads=1)
    assert_same_log_probs(model, translator, source, target, source_words)


def test_directory(vocabulary, tmp_path):
    model = Transformer(TransformerConfig(VOCAB_SIZE, 1, 16, 24, 2))
    folder = tmp_path / "model"
    result = export_ctranslate2(model, vocabulary, folder, card_of(model))
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    size = sum(path.stat().st_size for path in files.values())
    assert result == {"ctranslate2": str(folder), "bytes": size}
    assert files["vocabulary.txt"].read_bytes() == vocabulary.target.file.read_bytes()
    # Weights are stored once, including the one embedding matrix and a table of 2048 positions.
    weights = 4 * (model.count_params() + 2048 * 16)
    assert weights < files["model.bin"].stat().st_size < weights + 5000
    assert json.loads(files["shared_vocabulary.json"].read_text()) == TOKENS
    card = json.loads(files["assets.extra/model_card.json"].read_text())
    assert (card["checkpoint"]["checkpoint"], card["parameters"]) == (
        "step-00000007",
        model.count_params(),
    )
    assert read_card(folder).format == "ctranslate2"
    with refused("export_dir", folder):
        export_ctranslate2(model, vocabulary, folder, card_of(model))
    other = dataclasses.replace(card_of(model), checkpoint=CheckpointInfo("other"))
    export_ctranslate2(model, vocabulary, folder, other, overwrite=True)
    assert "other" in files["assets.extra/model_card.json"].read_text()


def test_stored_in_fewer_bits(vocabulary, tmp_path):
    model = Transformer(TransformerConfig(VOCAB_SIZE, 1, 64, 256, 2))
    sizes, scores = {}, {}
    source, target = make_pairs(20, seed=5)
    for weights in ("float32", "bfloat16", "int8"):
        folder = tmp_path / weights
        card = dataclasses.replace(card_of(model), weights=weights)
        export_ctranslate2(model, vocabulary, folder, card)
        sizes[weights] = (folder / "model.bin").stat().st_size
        translator = ctranslate2.Translator(str(folder), intra_threads=1)
        rows = translator.score_batch(words_of(source), words_of(target))
        scores[weights] = np.concatenate([row.log_probs for row in rows])
    table = 4 * 2048 * 64  # positions are not quantized to int8
    exact = sizes["float32"] - table
    assert sizes["bfloat16"] < 0.55 * sizes["float32"] and sizes["int8"] - table < 0.4 * exact
    # The bound for int8 holds on all processors, because no sum saturates: see the next test.
    for weights, atol in (("bfloat16", 0.05), ("int8", 0.2)):
        difference = np.abs(scores[weights] - scores["float32"])
        assert 0 < difference.max() < atol


def saturating_product(rows, matrix):
    """The product of processors with AVX2 but not VNNI: uint8 [R, D], int8 [E, D] -> [R, E].

    They add two neighbouring products in 16 bits, which saturate, and the sums in 32 bits.
    """
    products = rows[:, None].astype(np.int32) * matrix  # [R, E, D]
    pairs = products.reshape(len(rows), len(matrix), -1, 2).sum(axis=-1)
    return np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=-1)


def quantized(matrix, levels):
    """Rounds the rows of a matrix to integers up to `levels`."""
    return np.rint(matrix * (levels / np.abs(matrix).max(axis=1, keepdims=True))).astype(np.int8)


def test_no_sum_of_two_int8_products_saturates():
    model = Transformer(TransformerConfig(VOCAB_SIZE, 1, 64, 256, 2, tie_embeddings=False))
    card = card_of(model)
    exact, _ = arrays_of(model, card)
    ours, _ = arrays_of(model, dataclasses.replace(card, weights="int8"))
    for name in (name for name in ours if name.endswith("/weight")):
        matrix = ours[name]
        assert matrix.dtype == np.int8 and np.abs(matrix).max(axis=1).tolist() == [64] * len(matrix)
        largest = np.abs(exact[name]).max(axis=1, keepdims=True)
        restored = matrix / ours[f"{name}_scale"][:, None]
        assert (np.abs(restored - exact[name]) <= largest / 128 * 1.001).all()
        # CTranslate2's own rounding has 127 levels.
        for levels, saturates in ((matrix, False), (quantized(exact[name], 127), True)):
            # The rows with the largest sums: 255 for weights of one sign, and 0 for the others.
            rows = np.concatenate([levels > 0, levels < 0]).astype(np.uint8) * np.uint8(255)
            product = rows.astype(np.int32) @ levels.T.astype(np.int32)
            assert (saturating_product(rows, levels) != product).any() == saturates


def test_rotary_positions_need_no_table(vocabulary, tmp_path):
    config = TransformerConfig(VOCAB_SIZE, 1, 16, 24, 2, positions="rotary", logits_bias=True)
    model = Transformer(config)
    perturb(model)
    bias = np.zeros(VOCAB_SIZE, np.float32)
    bias[:SOURCE] = -100  # neither ends nor writes special tokens
    model.logits_embedding.bias.assign(bias)
    folder = tmp_path / "model"
    card = card_of(model)
    description = dataclasses.replace(card.description, **vocabulary.fingerprints)
    card = dataclasses.replace(card, description=description)
    export_ctranslate2(model, vocabulary, folder, card)
    weights = 4 * model.count_params()
    assert weights < (folder / "model.bin").stat().st_size < weights + 5000

    length = 2100  # more than CTranslate2 prepares rotations for, and than other tables have
    source = np.random.default_rng(6).integers(SOURCE, VOCAB_SIZE, (1, length)).astype(np.int32)
    source[:, -1] = EOS_ID
    text = " ".join(words_of(source)[0])
    translator = kt.load(folder, max_source_length=length, extra_length=10, beam_size=1)
    ((found,),) = translator.translate([text])
    assert (found.truncated, found.unfinished, found.tokens) == (False, True, length + 10)
    target = np.array([[TOKENS.index(token) for token in found.text.split()] + [EOS_ID]], np.int32)
    exact = ctranslate2.Translator(str(folder), intra_threads=1)
    assert_same_log_probs(model, exact, source, target)
    (scored,) = exact.score_batch(words_of(source), words_of(target), max_input_length=0)
    assert found.log_prob == pytest.approx(sum(scored.log_probs[:-1]), rel=1e-4)


@pytest.mark.parametrize(
    ("norm", "num_layers", "layer"), [("post", 2, -1), ("pre", 2, -2), ("pre", 1, -1)]
)
def test_the_layer_of_alignments(norm, num_layers, layer):
    model = Transformer(TransformerConfig(VOCAB_SIZE, num_layers, 16, 24, 2, norm=norm))
    arrays, _ = arrays_of(model, card_of(model))
    assert arrays["decoder/alignment_layer"] == layer


def test_weights_that_are_not_finite_are_refused(vocabulary, tmp_path):
    model = Transformer(TransformerConfig(VOCAB_SIZE, 1, 16, 24, 2))
    model.trainable_variables[3].assign(model.trainable_variables[3] * np.nan)
    with refused("model", about="finite"):
        export_ctranslate2(model, vocabulary, tmp_path / "model", card_of(model))


def test_sentencepiece_tokens(tmp_path):
    text = ["the cat sat on the mat", "a dog ran to the house", "big red cats 😀"] * 5
    tokenizer = learn_subwords(text, "bpe", 310, tmp_path, seed=1)
    model = Transformer(TransformerConfig(310, 1, 16, 24, 2))
    export_ctranslate2(
        model, VocabularyPair(tokenizer, tokenizer), tmp_path / "model", card_of(model)
    )
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "model" / "vocabulary.model")
    )
    tokens = json.loads((tmp_path / "model" / "shared_vocabulary.json").read_text())
    assert tokens[:4] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert tokens == [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    for line, ids in zip(text[:3], tokenizer.encode(text[:3]), strict=True):
        assert processor.encode(line, out_type=str) == [tokens[i] for i in ids]
    answer = ctranslate2.Translator(str(tmp_path / "model")).translate_batch(
        [processor.encode(text[0], out_type=str), []], max_decoding_length=5
    )
    assert len(answer[0].hypotheses[0]) == 5
    assert answer[1].hypotheses == [[]]
