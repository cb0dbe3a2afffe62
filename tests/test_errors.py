"""What messages say of the errors of libraries."""

import pytest
import tensorflow as tf

from keras_transformer.errors import reason


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (
            lambda: tf.strings.to_number(["a"]),
            "StringToNumberOp could not correctly convert string",
        ),
        (lambda: tf.reshape(tf.zeros(3), [2]), "Input to reshape is a tensor with 3 values, but"),
    ],
)
def test_names_of_operations_of_tensorflow_are_no_reasons(fail, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\{\{function_node") as error:
        fail()
    text = reason(error.value)
    assert text.startswith(said) and "{{" not in text and "[Op:" not in text


def test_a_reason_is_the_first_line_or_the_type():
    assert reason(ValueError("one\ntwo")) == "one"
    assert reason(ValueError()) == "ValueError"
    assert reason(KeyError("{{a}} must be {b}")) == "'{{a}} must be {b}'"
