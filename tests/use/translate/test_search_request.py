"""What a search is asked for."""

import pytest

from keras_transformer.use.translate.search_request import SearchRequest
from tests.refusals import refused


def test_some_of_the_texts():
    request = SearchRequest(
        ["a", "b", "c"],
        guaranteed=2,
        target_prefixes=["x", "", "z"],
        required_phrases=[["q"], [], ["r", "s"]],
        aligned=[True, False, False],
        scores=False,
    )
    assert request.select([2, 0]) == SearchRequest(
        ["c", "a"],
        guaranteed=2,
        target_prefixes=["z", "x"],
        required_phrases=[["r", "s"], ["q"]],
        aligned=[False, True],
        scores=False,
    )
    assert SearchRequest(["a", "b"], guaranteed=1).select([1]) == SearchRequest(["b"], guaranteed=1)
    # An empty list still asks for a constrained search; None does not.
    assert request.select([]).required_phrases == []


@pytest.mark.parametrize("argument", ["target_prefixes", "required_phrases"])
def test_one_for_each_text(argument):
    with refused(argument, "1 for 2"):
        SearchRequest(["a", "b"], guaranteed=1, **{argument: ["x"]})
