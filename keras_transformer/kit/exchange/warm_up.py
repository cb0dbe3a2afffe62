"""Warm-up requests, which TensorFlow Serving runs before it serves a model.

The first call of a signature optimizes its graph and takes much longer than all others. TensorFlow
Serving reads `assets.extra/tf_serving_warmup_requests`, a TFRecord file, and answers its requests
while it loads a model, so that no client waits for that. A record is a TensorFlow Serving
PredictionLog. These messages have four nested fields and are encoded here to avoid a dependency on
tensorflow-serving-api; a test decodes them with that package.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import tensorflow as tf

WARM_UP = Path("assets.extra") / "tf_serving_warmup_requests"
# A text that any vocabulary can encode.
EXAMPLE = "Hello, world."
# Field numbers in TensorFlow Serving's .proto files, as (message, field).
PREDICT_LOG = 6  # PredictionLog.predict_log
REQUEST = 1  # PredictLog.request
MODEL_SPEC = 1  # PredictRequest.model_spec
SIGNATURE_NAME = 3  # ModelSpec.signature_name
INPUTS = 2  # PredictRequest.inputs, a map: an entry for each input
KEY = 1
VALUE = 2


def write_warm_up(folder: Path, signatures: Mapping[str, Callable]) -> None:
    """Writes a request for every signature that only takes texts.

    Args:
        folder: the export's directory.
        signatures: tf.functions with an input signature, by name.
    """
    with tf.io.TFRecordWriter(str(folder / WARM_UP)) as writer:
        for name, signature in signatures.items():
            specs, _ = signature.get_concrete_function().structured_input_signature
            if all(spec.dtype == tf.string for spec in specs):
                writer.write(prediction_log(name, [spec.name for spec in specs]))


def prediction_log(signature: str, inputs: list[str]) -> bytes:
    """Encodes a PredictionLog with a request to a signature, whose inputs are one text each."""
    request = _field(MODEL_SPEC, _field(SIGNATURE_NAME, signature.encode()))
    tensor = tf.make_tensor_proto([EXAMPLE]).SerializeToString()
    for name in inputs:
        request += _field(INPUTS, _field(KEY, name.encode()) + _field(VALUE, tensor))
    return _field(PREDICT_LOG, _field(REQUEST, request))


def _field(number: int, content: bytes) -> bytes:
    """Encodes a length-delimited protocol buffer field: a message, a string or bytes."""
    has_length = 2  # the wire type
    return _varint(number << 3 | has_length) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Encodes a protocol buffer varint: seven bits per byte, lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
