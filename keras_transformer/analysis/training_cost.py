"""What training costs in floating-point operations: the paper's estimate, and a count (Table 2).

The estimate of section 6.1 is what the GPUs could have done in the time: training time x number of
GPUs x sustained single-precision rate. The count is what the model needs.
"""

from typing import NamedTuple

from keras_transformer.analysis.complexity import forward_flops
from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.presets import preset

# Sustained single-precision operations a second, footnote 5 of the paper.
SUSTAINED_FLOPS = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}

SENTENCE_TOKENS = 25  # of the sentences the count is made for; twice as many change it by 1%


class Training(NamedTuple):
    """How the paper trained a model (section 5.2)."""

    preset: str
    hours: float
    steps: int
    gpus: int = 8
    gpu: str = "P100"
    tokens_per_batch: int = 25_000  # of each side, section 5.1


PAPER_TRAININGS = (Training("base", 12, 100_000), Training("big", 3.5 * 24, 300_000))


def estimated_flops(hours: float, gpus: int, gpu: str) -> float:
    """Returns time x GPUs x sustained rate.

    Raises:
        InputError: for a GPU whose rate the paper does not give.
    """
    if gpu not in SUSTAINED_FLOPS:
        rule = f"the GPU must be one of {', '.join(SUSTAINED_FLOPS)}"
        raise InputError(f"{rule}. Received: {gpu!r}")
    return hours * 3600 * gpus * SUSTAINED_FLOPS[gpu]


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
        sentence_tokens: S = T of every sentence; attention's part grows with it.
    """
    sentences = tokens_per_batch // sentence_tokens
    return 3 * steps * forward_flops(config, sentences, sentence_tokens, sentence_tokens)


def paper_training_costs(vocab_size: int = 37_000) -> list[dict[str, float | str]]:
    """The paper's two trainings, estimated and counted.

    Returns:
        For each {"model", "hours", "gpus", "gpu", "steps", "estimated_flops", "model_flops",
        "utilization": the share of the sustained rate that the count makes}.
    """
    costs = []
    for training in PAPER_TRAININGS:
        config, _ = preset(training.preset, vocab_size)
        estimated = estimated_flops(training.hours, training.gpus, training.gpu)
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
