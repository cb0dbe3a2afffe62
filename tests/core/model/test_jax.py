"""The same checkpoint under JAX: an extra (pip install "keras-transformer-nmt[jax]")."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.training.checkpoint_weights import read_checkpoint
from keras_transformer.core.training.checkpoints import CheckpointStore

ROOT = Path(__file__).resolve().parents[3]

# Reads weights and inputs of each model, writes its logits; knows nothing of TensorFlow.
PROGRAM = """
import sys
import numpy as np
import keras
from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model.transformer import Transformer

assert keras.backend.backend() == "jax"
for folder in sys.argv[1:]:
    inputs = dict(np.load(f"{folder}/inputs.npz"))
    settings = {name: inputs.pop(name).item() for name in list(inputs) if inputs[name].shape == ()}
    model = Transformer(TransformerConfig(**settings))
    for place, variable in enumerate(model.variables):
        variable.assign(inputs[str(place)])
    ids = {"source": inputs["source"], "target": inputs["target"]}
    np.save(f"{folder}/logits.npy", model(ids, training=False))
assert "tensorflow" not in sys.modules
"""


def write_inputs(folder, changes):
    """Saves a checkpoint and writes down its weights, settings and ids; returns its logits."""
    settings = dict(vocab_size=50, num_layers=2, d_model=16, d_ff=32, num_heads=4, **changes)
    model = Transformer(TransformerConfig(**settings))
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:  # gains and biases are 1 and 0 at the start
        variable.assign(variable + rng.normal(scale=0.1, size=variable.shape))
    variables = [variable.value for variable in model.variables]
    CheckpointStore(folder, model.config).save({"model": variables}, step=1)
    weights, _ = read_checkpoint(folder, str(folder / "checkpoints" / "step-00000001"))
    ids = {name: rng.integers(4, 50, size=(3, 9)).astype("int32") for name in ("source", "target")}
    ids["source"][1, 5:] = 0
    ids["target"][2, 3:] = 0
    arrays = {str(place): weight for place, weight in enumerate(weights)}
    np.savez(folder / "inputs.npz", **arrays, **ids, **settings)
    return model(ids, training=False)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="jax is not installed; install: pip install '.[jax]'",
)
def test_logits_of_a_checkpoint_are_those_of_tensorflow(tmp_path):
    others = {"norm": "pre", "positions": "learned", "tie_embeddings": False}
    expected = {}
    recurrent = {"decoder_self_attention": "ssru"}
    for name, changes in (("defaults", {}), ("others", others), ("recurrent", recurrent)):
        (tmp_path / name).mkdir()
        expected[tmp_path / name] = write_inputs(tmp_path / name, changes)
    command = [sys.executable, "-c", PROGRAM, *expected]
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        command,
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for folder, wanted in expected.items():
        logits = np.load(folder / "logits.npy")
        assert logits.shape == (3, 9, 50) and np.ptp(logits) > 1
        np.testing.assert_allclose(logits, wanted, atol=1e-4, err_msg=folder.name)
