"""How probable it is that a translation is good, judged by what the search knows. Not in the paper.

A model's own probabilities are no such judgement: they depend on the length and on the language,
and stay high where a clause is missing. A logistic regression weighs them against a few other
facts. translate/confidence.py collects these, and evaluate/calibration.py fits it to references.
"""

import dataclasses
import math
from typing import Any, NamedTuple

from keras_transformer.support.errors import require
from keras_transformer.support.fields import Size, check_fields


class Evidence(NamedTuple):
    """What speaks for or against a translation, from its text and its search."""

    log_prob: float  # mean of its subwords' log probabilities, natural logarithm
    # How far the least probable one lies below a probability of 5%, if it counts; at most 0
    surprise: float
    # The share of source subwords that some subword is aligned with. The first two count as aligned
    # with each other: where a search does not align them, that would take a further pass.
    coverage: float
    length: float  # logarithm of its number of subwords
    ratio: float  # logarithm of that number, divided by the source's
    repetition: float  # 1 if it repeats subwords at once, and the source does not; otherwise 0
    copied: float  # the share of its words that are words of the source
    numbers: float  # 1 if its numbers are not the source's; otherwise 0


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A model's logistic regression from evidence to confidence, fitted on its validation split.

    A translation counts as good if its chrF reaches `good_chrf`, as four fifths of that split do.
    """

    weights: dict[str, float]  # a factor for each field of Evidence
    bias: float
    good_chrf: float  # in percent
    sentences: Size  # that it was fitted to
    checkpoint: dict[str, Any]  # of which weights: CheckpointInfo.to_json()

    def __post_init__(self):
        check_fields(self)
        rule = f"must have {', '.join(Evidence._fields)}"
        is_complete = set(self.weights) == set(Evidence._fields)
        require(is_complete, "weights", rule, ", ".join(self.weights) or "none")

    def confidence(self, facts: Evidence) -> float:
        """Returns the probability that a translation is good, from 0 to 1."""
        known = facts._asdict()
        logit = self.bias + sum(known[name] * weight for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-min(max(logit, -50.0), 50.0)))
