import h5py
import numpy as np
import pytest

from keras_transformer.kit.exchange.tensors import read_tensors
from tests.kit.exchange.hugging_face_files import SHARED
from tests.refusals import refused

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("path", "name", "tensor"),
    [
        (
            "model/tf_marian_mt_model/model/encoder/layers.0/self_attn/k_proj/kernel:0",
            "model.encoder.layers.0.self_attn.k_proj.weight",
            MATRIX.T,
        ),
        (
            "model/tf_marian_mt_model_1/model/decoder/layers.11/encoder_attn_layer_norm/gamma:0",
            "model.decoder.layers.11.encoder_attn_layer_norm.weight",
            MATRIX,
        ),
        (
            "model/tf_marian_mt_model/model/decoder/layers.0/fc1/bias:0",
            "model.decoder.layers.0.fc1.bias",
            MATRIX,
        ),
        (
            "model/tf_marian_mt_model/model/encoder/embed_positions/embeddings:0",
            "model.encoder.embed_positions.weight",
            MATRIX,
        ),
        # Transformers changed these two names.
        (f"model/{SHARED}/{SHARED}/embeddings:0", "model.shared.weight", MATRIX),
        (f"model/{SHARED}/{SHARED}/weight:0", "model.shared.weight", MATRIX),
        ("final_logits_bias/final_logits_bias:0", "final_logits_bias", MATRIX),
        ("tf_marian_mt_model/final_logits_bias:0", "final_logits_bias", MATRIX),
    ],
)
def test_tensors_of_tensorflow_get_the_names_and_the_layout_of_pytorch(
    path, name, tensor, tmp_path
):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file[path] = MATRIX
    ((found, value),) = read_tensors(tmp_path / "tf_model.h5").items()
    assert found == name
    np.testing.assert_array_equal(value, tensor)


def test_links_to_other_files_are_not_followed(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["final_logits_bias"] = MATRIX
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file["final_logits_bias"] = h5py.ExternalLink(tmp_path / "other.h5", "final_logits_bias")
    assert read_tensors(tmp_path / "tf_model.h5") == {}


def test_a_damaged_file(tmp_path):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file["final_logits_bias"] = np.ones(5000)
    content = (tmp_path / "tf_model.h5").read_bytes()
    (tmp_path / "tf_model.h5").write_bytes(content[:3000])
    with refused(None, place="tf_model.h5", about="complete"):
        read_tensors(tmp_path / "tf_model.h5")
