import dataclasses

import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.presets import preset
from keras_transformer.kit.paper.complexity import forward_flops, paper_training_costs
from keras_transformer.kit.paper.published import TABLE_2


def test_base_by_hand():
    # 37000 x 512; 4 x 512^2 an attention; 2 x 512 x 2048 + 2048 + 512 a network; 1024 a norm.
    encoder = 6 * (1_048_576 + 2_099_712 + 2 * 1024)
    decoder = 6 * (2 * 1_048_576 + 2_099_712 + 3 * 1024)
    assert TransformerConfig().parameters == 18_944_000 + encoder + decoder == 63_045_632


@pytest.mark.parametrize("row", ["A1", "A2", "A3", "A4"])
def test_rows_a_keep_the_size_of_base(row):
    sizes = [preset(name, 37_000)[0].parameters for name in ("base", row)]
    assert sizes[0] == sizes[1]


# These differ from one another in more than sizes.
@pytest.mark.parametrize("name", ["base", "E", "modern", "student"])
def test_counts_equal_the_built_model(name):
    config, _ = preset(name, 50)
    # A tenth of the widths, or heads of uneven width would not stay what the row is about.
    small = dataclasses.replace(
        config,
        num_layers=2,
        d_model=config.d_model // 16,
        d_ff=config.d_ff // 16,
        d_k=max(1, config.d_k // 16),
        d_v=max(1, config.d_v // 16),
        max_positions=20,
    )
    assert Transformer(small).count_params() == small.parameters


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "pre", "num_layers": 2},
        {"tie_embeddings": False},
        {"source_vocab_size": 7},
        {"source_vocab_size": 7, "tie_embeddings": False},
        {"attention_bias": True, "decoder_layers": 3},
        {"logits_bias": True, "activation": "swish"},
        {"decoder_self_attention": "ssru", "attention_bias": True},
    ],
)
def test_counts_of_options_equal_the_built_model(changes):
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 6, "num_heads": 2, "d_k": 3, "d_v": 5}
    config = TransformerConfig(vocab_size=9, **{**sizes, **changes})
    assert Transformer(config).count_params() == config.parameters


def test_forward_flops_by_hand():
    # One sentence of one token a side, all widths 2, one head, vocabulary 5. In multiplications:
    # encoder 4 projections of 2 x 2, network 2 x 2 x 2, scores 2 + 2; decoder 8 projections,
    # network 8, scores twice 4; logits 2 x 5.
    config = TransformerConfig(vocab_size=5, num_layers=1, d_model=2, d_ff=2, num_heads=1)
    assert forward_flops(config, 1, 1, 1) == 2 * ((16 + 8 + 4) + (32 + 8 + 8) + 10)
    deeper = dataclasses.replace(config, decoder_layers=3)
    assert forward_flops(deeper, 1, 1, 1) == 2 * ((16 + 8 + 4) + 3 * (32 + 8 + 8) + 10)
    # An SSRU has two products of 2 x 2 in place of four and the scores.
    recurrent = dataclasses.replace(config, decoder_self_attention="ssru")
    assert forward_flops(recurrent, 1, 1, 1) == 2 * ((16 + 8 + 4) + (24 + 8 + 4) + 10)


def test_forward_flops_grow_with_the_square_of_the_length_in_attention_only():
    config = TransformerConfig(vocab_size=5, num_layers=1, d_model=2, d_ff=2, num_heads=1)
    one, two, four = (forward_flops(config, 1, n, n) for n in (1, 2, 4))
    square = 2 * 3 * 4  # three attentions of 4 multiplications a pair
    assert two == 2 * (one - square) + 4 * square
    assert four == 4 * (one - square) + 16 * square


def test_the_papers_figures_come_out():
    base, big = paper_training_costs()
    assert f"{base['estimated_flops']:.1e}" == f"{TABLE_2[-2].flops_de:.1e}" == "3.3e+18"
    assert f"{big['estimated_flops']:.1e}" == f"{TABLE_2[-1].flops_de:.1e}" == "2.3e+19"
    assert base["utilization"] == round(base["model_flops"] / base["estimated_flops"], 3) < 1


def test_model_flops_by_hand():
    # Base, without attention's scores: the encoder's layers have 4 projections of 512 x 512 and
    # two of 512 x 2048, the decoder's 4 more projections; then 512 x 37000; 2 operations each.
    layers = 6 * (12 * 512 * 512 + 4 * 512 * 2048)
    scores = 6 * 3 * 25 * 2 * 512  # three attentions over 25 positions, weights and sums
    wanted = 3 * 2 * 25_000 * (layers + scores + 512 * 37_000)
    assert paper_training_costs()[0]["model_flops"] == 100_000 * wanted
