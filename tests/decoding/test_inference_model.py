import dataclasses

import numpy as np
import pytest

from keras_transformer.decoding.inference_model import inference_model
from tests.model.test_transformer import CONFIG, logits, random_model, steps_equal_one_pass


@pytest.mark.parametrize("tie_embeddings", [True, False])
@pytest.mark.parametrize(("d_v", "source_vocab_size"), [(3, None), (5, None), (5, 17)])
def test_layout_changes_no_number(tie_embeddings, d_v, source_vocab_size):
    settings = {"tie_embeddings": tie_embeddings, "source_vocab_size": source_vocab_size}
    model = random_model(dataclasses.replace(CONFIG, d_v=d_v, **settings))
    copy = inference_model(model)
    matrix = copy.logits_embedding.matrix
    assert tuple(matrix.shape) == (CONFIG.d_model, CONFIG.vocab_size)
    assert copy.count_params() == model.count_params()
    arguments = ([[4, 9, 12, 2], [5, 2, 0, 0]], [[1, 7, 8], [1, 3, 0]])
    np.testing.assert_allclose(logits(copy, *arguments), logits(model, *arguments), atol=1e-5)
    assert inference_model(copy) is copy


@pytest.mark.parametrize(
    "settings",
    [
        {"positions": "learned"},
        {"norm": "pre"},
        {"attention_window": 3, "tie_embeddings": False},
    ],
)
def test_cached_steps_equal_one_pass(settings):
    steps_equal_one_pass(inference_model(random_model(dataclasses.replace(CONFIG, **settings))))
