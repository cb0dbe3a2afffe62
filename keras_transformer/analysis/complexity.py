"""Counts of parameters and of arithmetic, from a configuration alone (Tables 2 and 3)."""

from keras_transformer.config import TransformerConfig


def count_parameters(config: TransformerConfig) -> dict[str, int]:
    """Counts trainable numbers without building the model.

    Args:
        config: the model's configuration.

    Returns:
        {"embedding", "encoder", "decoder", "total"}. The embedding includes the softmax matrix,
        which is the same where `tie_embeddings`, and learned positions of both sides.
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
    do the masked halves of attention scores. A training step takes three times as many: its
    backward pass has two products for each of the forward pass.

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
