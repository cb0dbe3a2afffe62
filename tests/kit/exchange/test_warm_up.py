"""Warm-up requests, read with TensorFlow Serving's own package."""

import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from keras_transformer.kit.exchange.warm_up import WARM_UP, write_warm_up

TEXTS = tf.TensorSpec([None], tf.string)
NUMBERS = tf.TensorSpec([None, None], tf.int32)


@tf.function(input_signature=[TEXTS])
def upper(text):
    return {"translation": tf.strings.upper(text)}


@tf.function(input_signature=[TEXTS, TEXTS])
def join(source, target):
    return {"both": tf.strings.join([source, target])}


@tf.function(input_signature=[NUMBERS, TEXTS])
def of_numbers(ids, text):
    return {"ids": ids, "text": text}


def test_each_signature_of_texts_has_a_request(tmp_path):
    (tmp_path / WARM_UP).parent.mkdir()
    signatures = {"serving_default": upper, "a" * 200: join, "search_ids": of_numbers}
    write_warm_up(tmp_path, signatures)
    found = {}
    for record in tf.data.TFRecordDataset(str(tmp_path / WARM_UP)).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        found[request.model_spec.signature_name] = inputs
    assert list(found) == ["serving_default", "a" * 200]
    assert found["serving_default"] == {"text": [b"Hello, world."]}
    assert found["a" * 200] == {"source": [b"Hello, world."], "target": [b"Hello, world."]}
    for name, inputs in found.items():
        assert all(value.shape == (1,) for value in inputs.values())
        (answer,) = signatures[name](**inputs).values()
        assert answer.shape == [1]
