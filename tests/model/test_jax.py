"""The same checkpoint under JAX: an extra (pip install "keras-transformer[jax]")."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.model.transformer import build_transformer
from keras_transformer.training.checkpoints import CheckpointStore, named_variables, read_weights

# Reads weights and inputs, writes logits; knows nothing of TensorFlow.
PROGRAM = """
import sys
import numpy as np
import keras
from keras_transformer.config import TransformerConfig
from keras_transformer.model.transformer import build_transformer

assert keras.backend.backend() == "jax"
inputs = dict(np.load(sys.argv[1]))
settings = {name: inputs.pop(name).item() for name in list(inputs) if inputs[name].shape == ()}
model = build_transformer(TransformerConfig(**settings))
for place, variable in enumerate(model.variables):
    variable.assign(inputs[str(place)])
ids = {"source": inputs["source"], "target": inputs["target"]}
assert "tensorflow" not in sys.modules
np.save(sys.argv[2], model(ids, training=False))
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
@pytest.mark.parametrize(
    "changes", [{}, {"norm": "pre", "positions": "learned", "tie_embeddings": False}]
)
def test_logits_of_a_checkpoint_are_those_of_tensorflow(tmp_path, changes):
    settings = dict(vocab_size=50, num_layers=2, d_model=16, d_ff=32, num_heads=4, **changes)
    model = build_transformer(TransformerConfig(**settings))
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:  # gains and biases are 1 and 0 at the start
        variable.assign(variable + rng.normal(scale=0.1, size=variable.shape))
    CheckpointStore(tmp_path).save({"model": named_variables(model.variables)}, step=1)
    weights, _ = read_weights(tmp_path, str(tmp_path / "checkpoints" / "step-00000001"))
    ids = {name: rng.integers(4, 50, size=(3, 9)).astype("int32") for name in ("source", "target")}
    ids["source"][1, 5:] = 0
    ids["target"][2, 3:] = 0
    arrays = {str(place): weight for place, weight in enumerate(weights)}
    np.savez(tmp_path / "inputs.npz", **arrays, **ids, **settings)
    command = [sys.executable, "-c", PROGRAM, tmp_path / "inputs.npz", tmp_path / "logits.npy"]
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    logits = np.load(tmp_path / "logits.npy")
    assert logits.shape == (3, 9, 50) and np.ptp(logits) > 1
    np.testing.assert_allclose(logits, model(ids, training=False), atol=1e-4)
