"""Counts of arithmetic operations, from a configuration alone (Table 2)."""

from keras_transformer.core.config import GATED, TransformerConfig
from keras_transformer.core.presets import preset

SUSTAINED_FLOPS = 9.5e12  # per second, of a P100 in single precision: footnote 5 of the paper
GPUS = 8  # section 5.2
TOKENS_PER_BATCH = 25_000  # on each side, section 5.1
SENTENCE_TOKENS = 25  # assumed sentence length; doubling it changes the count by 1%
VOCABULARY = 37_000  # section 5.1


def forward_flops(
    config: TransformerConfig, sentences: int, source_length: int, target_length: int
) -> int:
    """Counts the floating-point operations of the matrix products in one forward pass.

    A multiplication and an addition are two operations. Padding and the masked halves of attention
    scores count, as they are computed. A training step takes three times as many operations, as the
    backward pass has two products for each product of the forward pass.

    Args:
        config: the model's configuration.
        sentences: number of sentence pairs.
        source_length: tokens of each source, padding included.
        target_length: tokens of each target, padding included.
    """
    d_model = config.d_model
    heads = config.num_heads
    queries = d_model * heads * config.d_k  # also keys, per token
    values = d_model * heads * config.d_v  # also outputs, per token
    feed_forward = (3 if config.activation in GATED else 2) * d_model * config.d_ff
    scores = heads * (config.d_k + config.d_v)  # weights and sums, per pair of positions
    encoder = source_length * (2 * queries + 2 * values + feed_forward)
    encoder += source_length * source_length * scores
    self_attention = 2 * queries + 2 * values + target_length * scores  # of the decoder, per token
    if config.decoder_self_attention == "ssru":
        self_attention = 2 * d_model * d_model
    decoder = target_length * (self_attention + queries + values + feed_forward)
    decoder += source_length * (queries + values)
    decoder += target_length * source_length * scores
    logits = target_length * d_model * config.vocab_size
    layers = config.num_layers * encoder + config.num_decoder_layers * decoder
    return 2 * sentences * (layers + logits)


def paper_training_costs() -> list[dict[str, float | str]]:
    """Returns the costs of the paper's two training runs, as in section 6.1 and as counted here."""
    costs = []
    for name, hours, steps in (("base", 12, 100_000), ("big", 84, 300_000)):  # section 5.2
        config, _ = preset(name, VOCABULARY)
        sentences = TOKENS_PER_BATCH // SENTENCE_TOKENS
        counted = 3 * steps * forward_flops(config, sentences, SENTENCE_TOKENS, SENTENCE_TOKENS)
        estimated = hours * 3600 * GPUS * SUSTAINED_FLOPS
        costs.append(
            {
                "model": name,
                "hours": hours,
                "gpus": GPUS,
                "gpu": "P100",
                "steps": steps,
                "estimated_flops": estimated,
                "model_flops": counted,
                "utilization": round(counted / estimated, 3),
            }
        )
    return costs
