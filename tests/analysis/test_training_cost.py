import pytest

from keras_transformer.analysis.complexity import forward_flops
from keras_transformer.analysis.paper import TABLE_2
from keras_transformer.analysis.training_cost import (
    estimated_flops,
    model_flops,
    paper_training_costs,
)
from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError


@pytest.mark.parametrize(
    ("gpu", "rate"), [("K80", 2.8e12), ("K40", 3.7e12), ("M40", 6.0e12), ("P100", 9.5e12)]
)
def test_estimate(gpu, rate):
    assert estimated_flops(2, 3, gpu) == pytest.approx(7200 * 3 * rate)


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
    assert model_flops(TransformerConfig(), 1, 25_000) == wanted
    assert paper_training_costs()[0]["model_flops"] == 100_000 * wanted


def test_longer_sentences_are_fewer():
    config = TransformerConfig(vocab_size=9, num_layers=1, d_model=4, d_ff=4, num_heads=1)
    assert model_flops(config, 7, 100, 50) == 3 * 7 * forward_flops(config, 2, 50, 50)


def test_unknown_gpu():
    with pytest.raises(InputError, match=r"the GPU must be one of K80, .*Received: 'V100'"):
        estimated_flops(1, 1, "V100")
