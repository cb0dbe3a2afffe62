"""How an adapter learns corrections as they come."""

import dataclasses

from keras_transformer.core.config import TrainingConfig
from keras_transformer.support.fields import (
    Count,
    Length,
    Positive,
    Seed,
    Size,
    check_fields,
    option,
)

WARMUP_STEPS = 10


@dataclasses.dataclass(frozen=True)
class LearningConfig:
    """How corrections are learned."""

    steps: Size = option(3, "Optimizer steps for each correction.", is_advanced=True)
    earlier: Count = option(
        12,
        "Earlier corrections in each step, so that they are not forgotten.",
        is_advanced=True,
    )
    replay_tokens: Length = option(
        800,
        "Padded tokens per side of the training text in each step, so that the quality of other "
        "text is kept.",
        is_advanced=True,
    )
    mean_length: Size = option(
        17,
        "Number of corrections over which the adapter's weights are averaged (running mean).",
        is_advanced=True,
    )
    lora_rank: Size = option(16, "Rank of the adapter (LoRA, arXiv 2106.09685).", is_advanced=True)
    learning_rate: Positive = option(2e-3, "Learning rate, which is constant.", is_advanced=True)
    seed: Seed = option(1, "Seed for the adapter, dropout and the repeated text.")

    def __post_init__(self):
        check_fields(self)

    @property
    def training(self) -> TrainingConfig:
        """The adapter's training."""
        return TrainingConfig(
            warmup_steps=WARMUP_STEPS,
            learning_rate=self.learning_rate,
            decay="constant",
            tokens_per_batch=self.replay_tokens,
            seed=self.seed,
            lora_rank=self.lora_rank,
        )
