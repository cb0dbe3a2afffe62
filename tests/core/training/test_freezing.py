import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.training.freezing import freeze
from tests.refusals import refused

CONFIG = TransformerConfig(vocab_size=9, num_layers=2, d_model=4, d_ff=4, num_heads=2)


@pytest.fixture(scope="module")
def made():
    return Transformer(CONFIG)


@pytest.fixture
def model(made):
    """A model all of whose weights can be trained."""
    yield made
    for weight in made.weights:
        weight.trainable = True


@pytest.mark.parametrize(
    ("names", "frozen"),
    [
        ("", ()),
        ("embedding,encoder", ("embedding/", "encoder/")),
        ("encoder/layer_1", ("encoder/layer_1/",)),
        ("decoder/layer_[0]/feed*", ("decoder/layer_0/feed_forward",)),
    ],
)
def test_parts_are_named_by_components_of_paths(model, names, frozen):
    freeze(model, names)
    paths = {variable.path for variable in model.weights}
    trainable = {variable.path for variable in model.trainable_variables}
    expected = {path for path in paths if path.startswith(frozen)} if frozen else set()
    assert paths - trainable == expected


@pytest.mark.parametrize(
    ("names", "about"),
    [("enc", "encoder"), ("embedding,encoder,decoder", "some parameters to train")],
)
def test_impossible_names_to_freeze(model, names, about):
    with refused("freeze", names, about=about):
        freeze(model, names)
