"""How each task is decoded unless told otherwise."""

from typing import NamedTuple

from keras_transformer.errors import InputError


class TaskDecoding(NamedTuple):
    """The paper's settings, and what sources are cut to."""

    beam_size: int
    alpha: float  # length penalty
    extra_length: int  # the output has at most so many tokens more than the input
    max_source_length: int  # subwords that a source may always have, however short training's were


TASKS = {
    "translation": TaskDecoding(4, 0.6, 50, 2),  # section 6.1
    # Section 6.3. A tree must hold all words of the sentence: none should be cut off.
    "parsing": TaskDecoding(21, 0.3, 300, 1024),
}


def task_decoding(task: str) -> TaskDecoding:
    """Looks up a task.

    Raises:
        InputError: where there is none of that name.
    """
    if task not in TASKS:
        rule = f"a model's task must be one of {', '.join(TASKS)}"
        raise InputError(f"{rule}. Received: {task!r}")
    return TASKS[task]
