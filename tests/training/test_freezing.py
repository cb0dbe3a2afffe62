import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.model.transformer import Transformer
from keras_transformer.training.freezing import freeze

CONFIG = TransformerConfig(vocab_size=9, num_layers=2, d_model=4, d_ff=4, num_heads=2)


@pytest.mark.parametrize(
    ("names", "frozen"),
    [
        ("", ()),
        ("embedding,encoder", ("embedding/", "encoder/")),
        ("encoder/layer_1", ("encoder/layer_1/",)),
        ("decoder/layer_[0]/feed*", ("decoder/layer_0/feed_forward",)),
    ],
)
def test_parts_are_named_by_components_of_paths(names, frozen):
    model = Transformer(CONFIG)
    freeze(model, names)
    paths = {variable.path for variable in model.weights}
    trainable = {variable.path for variable in model.trainable_variables}
    expected = {path for path in paths if path.startswith(frozen)} if frozen else set()
    assert paths - trainable == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("enc", r"^freeze must name parts of the model \(.*encoder.*\). Received: enc$"),
        ("embedding,encoder,decoder", "^freeze must leave something to train"),
    ],
)
def test_impossible_names_to_freeze(names, message):
    with pytest.raises(InputError, match=message):
        freeze(Transformer(CONFIG), names)
