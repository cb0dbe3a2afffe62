"""How a sample of sentences is parsed and scored during training."""

from collections.abc import Sequence
from typing import Any

from keras_transformer.kit.parsing.parser import Parser
from keras_transformer.kit.parsing.parseval import parsing_scores, percent
from keras_transformer.kit.parsing.trees import Tree
from keras_transformer.use.evaluate.sample import SampleTask


def parsing_sample(task_options: dict[str, Any]) -> SampleTask:
    """Returns the task of a SampleAnswers with gold trees as references.

    Its scores are {"f1", "repaired": share of trees}, in percent.

    Args:
        task_options: the fields of the Linearisation.
    """
    return SampleTask("parsing", task_options, Parser, _scores)


def _scores(answers: Sequence[Any], trees: Sequence[Tree]) -> dict[str, float]:
    f1 = parsing_scores([answer.tree for answer in answers], trees)["f1"]
    repaired = sum(answer.repairs.total > 0 for answer in answers)
    return {"f1": f1, "repaired": percent(repaired, len(answers))}
