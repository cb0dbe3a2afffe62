"""Counts of a model's parameters, by part, from its configuration alone (Table 3)."""

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
