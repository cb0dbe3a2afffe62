"""Measures training steps on an accelerator, and the share of its peak that they use.

    python benchmarks/gpu_step.py                        (--help; --quick for a trial on a CPU)
    KERAS_BACKEND=jax python benchmarks/gpu_step.py      (with the extra "jax")

With JAX, the step uses Keras's stateless API in one jit with donated state; with TensorFlow, it is
the library's own training step, compiled by XLA, on packed rows of several sentences, as in
bin/train.py. Batches have sentences of one length without padding and 25,000 tokens per side;
computation is in bfloat16 with float32 variables; label smoothing and dropout are the presets'.
Model FLOPs count the matrix products (paper/complexity.py); the peak is the fastest of several
large bfloat16 products on the same device, measured first. Prints a table on stderr and one JSON
line on stdout.
"""

import argparse
import dataclasses
import functools
import json
import os
import platform
import statistics
import time

import numpy as np
from step_clock import megabytes
from timing import check_positive, log, require, run

WARM_UP = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=["base", "big"])
    parser.add_argument("--tokens", type=int, default=25_000, help="tokens per side and step")
    parser.add_argument("--length", type=int, default=32, help="tokens per sentence")
    parser.add_argument("--row", type=int, default=64, help="tokens per row, with TensorFlow")
    parser.add_argument("--vocab_size", type=int, default=37_000)
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    parser.add_argument("--precision", default="bfloat16", choices=["float32", "bfloat16"])
    parser.add_argument("--matmul_size", type=int, default=8192, help="for measuring the peak")
    parser.add_argument(
        "--replicas", type=int, default=1, help="logical devices to split it into, with TensorFlow"
    )
    parser.add_argument(
        "--replica_gib", type=int, default=16, help="memory of each of them, on a GPU"
    )
    parser.add_argument("--quick", action="store_true", help="use tiny sizes, for a trial run")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.presets, arguments.vocab_size, arguments.matmul_size = ["tiny"], 500, 256
        arguments.tokens, arguments.length, arguments.row, arguments.steps = 128, 8, 16, 2
    numbers = ("tokens", "length", "row", "steps", "matmul_size", "replicas", "replica_gib")
    check_positive(arguments, *numbers)
    is_multiple = arguments.row % arguments.length == 0
    require(is_multiple, "--row", "must be a multiple of --length", arguments.row)
    least = arguments.row
    require(arguments.tokens >= least, "--tokens", "must be at least --row", arguments.tokens)
    from keras_transformer.core.presets import preset

    for name in arguments.presets:
        preset(name, arguments.vocab_size)  # rejects unknown names before measuring
    backend = os.environ["KERAS_BACKEND"]
    engine = {"jax": Jax, "tensorflow": TensorFlow}.get(backend)
    require(engine is not None, "KERAS_BACKEND", "must be jax or tensorflow", backend)
    is_possible = arguments.replicas == 1 or engine is TensorFlow
    require(is_possible, "--replicas", "must be 1 with JAX", arguments.replicas)
    if arguments.replicas > 1:
        TensorFlow.split(arguments.replicas, arguments.replica_gib)
    peak = matmul_peak(engine, arguments.matmul_size, arguments.precision)
    log(f"{engine.__name__} on {engine.device()}: matrix products at {peak / 1e12:.4g} TFLOP/s")
    rows = {preset: measure(engine, preset, arguments, peak) for preset in arguments.presets}
    facts = {"backend": backend, "device": engine.device()}
    names = ("tokens", "length", "row", "precision", "replicas")
    settings = {name: getattr(arguments, name) for name in names}
    print(json.dumps({**facts, **settings, "matmul_peak_flops_per_second": peak, **rows}))


def measure(engine, name, arguments, peak):
    """Measures the median time of a step of the preset `name`, and derives rates from it."""
    from keras_transformer.core.config import EOS_ID
    from keras_transformer.core.presets import preset
    from keras_transformer.kit.paper.complexity import forward_flops

    config, training = preset(name, arguments.vocab_size)
    sentences = arguments.tokens // arguments.row * (arguments.row // arguments.length)
    shape = (sentences, arguments.length)
    ids = np.random.default_rng(0).integers(4, arguments.vocab_size, (2, *shape)).astype("int32")
    ids[:, :, -1] = EOS_ID
    begun = time.perf_counter()
    training = dataclasses.replace(training, precision=arguments.precision)
    step = engine.step(config, training, *ids, row=arguments.row)
    step(1)
    compiled = time.perf_counter() - begun
    step(WARM_UP)
    # In groups: waiting for every single step would leave the device idle between steps.
    group = max(1, arguments.steps // 5)
    seconds = []
    for _ in range(-(-arguments.steps // group)):
        begun = time.perf_counter()
        step(group)
        seconds.append((time.perf_counter() - begun) / group)
    median = statistics.median(seconds)
    flops = 3 * forward_flops(config, sentences, *shape[1:], *shape[1:]) / median
    found = {
        "target_tokens_per_second": rounded(sentences * arguments.length / median),
        "milliseconds": rounded(1000 * median),
        "milliseconds_range": [rounded(1000 * bound) for bound in (min(seconds), max(seconds))],
        "model_flops_per_second": flops,
        "share_of_peak": rounded(flops / peak),
        "peak_memory_bytes": engine.peak_memory(),
        "seconds_to_first_step": round(compiled, 1),
    }
    log(
        f"{name}: {found['target_tokens_per_second']:,.0f} target tokens/s, {flops / 1e12:.4g} "
        f"TFLOP/s, {found['share_of_peak']:.1%} of the peak, "
        f"{found['peak_memory_bytes'] / 2**30:.2f} GiB"
    )
    return found


def rounded(number: float) -> float:
    """Rounds to four significant digits."""
    return float(f"{number:.4g}")


def matmul_peak(engine, size, precision, repeats=8) -> float:
    """Measures the fastest of several products of size x size matrices, in FLOP/s."""
    multiply = engine.multiplier(size, precision)
    multiply()
    best = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        multiply()
        best = min(best, time.perf_counter() - begun)
    return CHAIN * 2 * size**3 / best


CHAIN = 10  # products between two waits


def processor() -> str:
    """Returns the model name of this machine's processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or "CPU"


def process_memory() -> int:
    """Returns this process's peak resident memory, in bytes."""
    return int(megabytes("VmHWM") * 2**20)


class Jax:
    """A step through Keras's stateless API, in one jitted function with donated state."""

    @staticmethod
    def device():
        import jax

        (device, *_) = jax.devices()
        return processor() if device.platform == "cpu" else device.device_kind

    @staticmethod
    def peak_memory():
        import jax

        return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", process_memory())

    @staticmethod
    def multiplier(size, precision):
        import jax
        import jax.numpy as jnp

        matrix = jax.random.normal(jax.random.key(0), (size, size)).astype(precision) / size**0.5

        @jax.jit
        def chain(product):
            for _ in range(CHAIN):
                product = jnp.matmul(product, matrix)
            return product

        return lambda: chain(matrix).block_until_ready()

    @staticmethod
    def step(config, training, source, target, row):
        """Makes the step; each row is one sentence."""
        import jax
        import keras

        from keras_transformer.core.model.transformer import Transformer, shift_right
        from keras_transformer.core.training.losses import projected_cross_entropy
        from keras_transformer.core.training.optimizer import make_fit_optimizer

        whole = Transformer(config, dtype=training.dtype_policy)
        model = keras.Model(whole.input, whole.decoder.output)  # without the logits
        place = [v.path for v in model.trainable_variables].index("embedding/embeddings")
        optimizer = make_fit_optimizer(config.d_model, training)
        optimizer.build(model.trainable_variables)

        def loss(weights, others, source, target):
            inputs = {"source": source, "target": shift_right(target)}
            states, others = model.stateless_call(weights, others, inputs, training=True)
            states = states.reshape(-1, config.d_model)  # [B T, D]
            matrix = weights[place].astype(states.dtype)
            smoothed, _ = projected_cross_entropy(
                states, matrix, target.reshape(-1), training.label_smoothing
            )
            return smoothed / target.size, others

        @functools.partial(jax.jit, donate_argnums=0)
        def update(state, source, target):
            weights, others, moments = state
            gradient = jax.value_and_grad(loss, has_aux=True)
            (value, others), gradients = gradient(weights, others, source, target)
            weights, moments = optimizer.stateless_apply(moments, gradients, weights)
            return (weights, others, moments), value

        groups = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
        # Copies, because donating the model's own buffers would delete them.
        state = tuple([jax.numpy.array(v.value, copy=True) for v in group] for group in groups)
        source, target = jax.device_put((source, target))

        def steps(count):
            nonlocal state
            for _ in range(count):
                state, value = update(state, source, target)
            return float(value)

        return steps


class TensorFlow:
    """This library's training step, compiled by XLA, on one device or on parts of it."""

    strategy = None  # of one device

    @classmethod
    def split(cls, replicas, gib):
        """Splits the device into logical ones, for a mirrored strategy."""
        import tensorflow as tf

        kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
        limit = 1024 * gib if kind == "GPU" else None  # a CPU takes none
        parts = [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for _ in range(replicas)]
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices(kind)[0], parts)
        cls.strategy = tf.distribute.MirroredStrategy([f"{kind}:{n}" for n in range(replicas)])

    @staticmethod
    def device():
        import tensorflow as tf

        for device in tf.config.list_physical_devices("GPU"):
            return tf.config.experimental.get_device_details(device).get("device_name", "GPU")
        return processor()

    @staticmethod
    def peak_memory():
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            return tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return process_memory()

    @staticmethod
    def multiplier(size, precision):
        import tensorflow as tf

        matrix = tf.cast(tf.random.stateless_normal([size, size], [0, 0]) / size**0.5, precision)

        @tf.function(jit_compile=True)
        def chain(product):
            for _ in range(CHAIN):
                product = tf.matmul(product, matrix)
            return tf.reduce_sum(product)

        return lambda: chain(matrix).numpy()

    @classmethod
    def step(cls, config, training, source, target, row):
        import tensorflow as tf

        from keras_transformer.core.training.step import XlaTrainingStep, zero_sums

        strategy = cls.strategy or tf.distribute.get_strategy()
        step = XlaTrainingStep(config, training, strategy)
        packed = (source.reshape(-1, row), target.reshape(-1, row))
        batches = iter(tf.data.Dataset.from_tensors(packed).repeat())
        return lambda count: step.run(batches, tf.constant(count), zero_sums()).loss.numpy()


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    run(main)
