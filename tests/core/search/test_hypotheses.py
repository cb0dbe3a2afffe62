"""The record of hypotheses, whose names are those of a graph's outputs."""

import numpy as np

from keras_transformer.core.config import EOS_ID, PAD_ID
from keras_transformer.core.search.hypotheses import Hypotheses


def test_the_names_are_those_in_exports():
    names = ("ids", "length", "score", "log_prob", "alignment", "token_log_prob", "is_finite")
    assert Hypotheses._fields == names


def test_what_is_not_computed_is_no_output_of_a_graph_and_none_in_arrays():
    searched = Hypotheses("ids", "length", (), (), (), (), "is_finite")
    outputs = {"ids": "ids", "length": "length", "is_finite": "is_finite"}
    assert searched.outputs == outputs
    found = Hypotheses.of(outputs)
    assert found == ("ids", "length", None, None, None, None, "is_finite")


def test_hypotheses_without_eos_are_unfinished():
    ids = np.array([[[7, EOS_ID, PAD_ID], [7, 8, 9], [PAD_ID] * 3], [[PAD_ID] * 3] * 3], np.int32)
    found = Hypotheses(ids, np.array([[2, 3, 0], [0, 0, 0]], np.int32))
    assert found.unfinished.tolist() == [[False, True, False], [False, False, False]]
