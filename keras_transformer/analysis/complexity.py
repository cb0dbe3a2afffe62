"""Counts of parameters and of arithmetic, from a configuration alone (Tables 2 and 3)."""

from typing import NamedTuple

from keras_transformer.config import TransformerConfig
from keras_transformer.presets import preset

# Sustained single-precision operations a second, footnote 5 of the paper.
SUSTAINED_FLOPS = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
SENTENCE_TOKENS = 25  # assumed length of sentences; twice as many change the count by 1%


class Training(NamedTuple):
    """How the paper trained a model (section 5.2)."""

    preset: str
    hours: float
    steps: int
    gpus: int = 8
    gpu: str = "P100"
    tokens_per_batch: int = 25_000  # of each side, section 5.1


PAPER_TRAININGS = (Training("base", 12, 100_000), Training("big", 3.5 * 24, 300_000))


def count_parameters(config: TransformerConfig) -> dict[str, int]:
    """Counts trainable numbers without building the model.

    Args:
        config: the model's configuration.

    Returns:
        {"embedding", "encoder", "decoder", "total"}. The embedding includes the softmax matrix
        (the same one with `tie_embeddings`) and the learned positions of both sides.
    """
    d_model, heads = config.d_model, config.num_heads
    # W^Q, W^K, W^V and W^O, section 3.2.2.
    attention = d_model * heads * (2 * config.d_k + config.d_v) + heads * config.d_v * d_model
    feed_forward = 2 * d_model * config.d_ff + config.d_ff + d_model  # equation 2
    norm = 2 * d_model
    last_norm = norm if config.norm == "pre" else 0
    encoder = config.num_layers * (attention + feed_forward + 2 * norm) + last_norm
    decoder = config.num_layers * (2 * attention + feed_forward + 3 * norm) + last_norm
    matrices = 1 if config.tie_embeddings else 3
    embedding = matrices * config.vocab_size * d_model
    if config.positions == "learned":
        embedding += 2 * config.max_positions * d_model
    return {
        "embedding": embedding,
        "encoder": encoder,
        "decoder": decoder,
        "total": embedding + encoder + decoder,
    }


def forward_flops(
    config: TransformerConfig, sentences: int, source_length: int, target_length: int
) -> int:
    """Counts the floating-point operations of the matrix products of one forward pass.

    A multiplication and an addition are two operations. Padding counts, as it is computed, and so
    do the masked halves of attention scores. A training step takes three times as many, as the
    backward pass has two products for each product of the forward pass.

    Args:
        config: the model's configuration.
        sentences: B.
        source_length, target_length: S and T.
    """
    d_model, heads = config.d_model, config.num_heads
    queries = d_model * heads * config.d_k  # also keys, a token
    values = d_model * heads * config.d_v  # also outputs, a token
    feed_forward = 2 * d_model * config.d_ff
    scores = heads * (config.d_k + config.d_v)  # a pair of positions, weights and sums
    encoder = source_length * (2 * queries + 2 * values + feed_forward)
    encoder += source_length * source_length * scores
    decoder = target_length * (3 * queries + 3 * values + feed_forward)
    decoder += source_length * (queries + values)
    decoder += target_length * (target_length + source_length) * scores
    logits = target_length * d_model * config.vocab_size
    return 2 * sentences * (config.num_layers * (encoder + decoder) + logits)


def model_flops(
    config: TransformerConfig,
    steps: int,
    tokens_per_batch: int,
    sentence_tokens: int = SENTENCE_TOKENS,
) -> int:
    """Counts the operations of training's matrix products: three forward passes a step.

    Args:
        config: the model's configuration.
        steps: optimizer steps.
        tokens_per_batch: of each side.
        sentence_tokens: S = T of every sentence; the share of attention grows with it.
    """
    sentences = tokens_per_batch // sentence_tokens
    return 3 * steps * forward_flops(config, sentences, sentence_tokens, sentence_tokens)


def paper_training_costs(vocab_size: int = 37_000) -> list[dict[str, float | str]]:
    """The cost of the paper's two trainings, as section 6.1 estimates it and as counted here.

    Returns:
        For each training {"model", "hours", "gpus", "gpu", "steps", "estimated_flops" (training
        time x number of GPUs x sustained rate), "model_flops" (what the model needs),
        "utilization" (counted over estimated)}.
    """
    costs = []
    for training in PAPER_TRAININGS:
        config, _ = preset(training.preset, vocab_size)
        estimated = training.hours * 3600 * training.gpus * SUSTAINED_FLOPS[training.gpu]
        counted = model_flops(config, training.steps, training.tokens_per_batch)
        costs.append(
            {
                "model": training.preset,
                "hours": training.hours,
                "gpus": training.gpus,
                "gpu": training.gpu,
                "steps": training.steps,
                "estimated_flops": estimated,
                "model_flops": counted,
                "utilization": round(counted / estimated, 3),
            }
        )
    return costs
