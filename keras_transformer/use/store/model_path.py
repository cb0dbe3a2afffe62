"""The path of a model, which of its weights to use, and how it is computed."""

import dataclasses
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown

AnyPath = str | os.PathLike
DEVICES = ("auto", "cpu", "cuda")
XLA = ("auto", "on", "off")
ENGINES = ("auto", "tensorflow", "ctranslate2")


@dataclasses.dataclass(frozen=True)
class ModelPath:
    """Where a model is, which of its weights to use, and how it is computed.

    Args:
        path: a model directory from training, a checkpoint in one, an export, or a .keras file next
            to its vocabulary. Several paths form an ensemble.
        checkpoint: for each model directory: "latest", "best" (in validation), "average:K" (the
            mean of the last K), or a checkpoint's path; several, separated by commas, are averaged.
            None for the one chosen for the directory, or else the latest.
        adapter: the directory of an adapter trained for this model (LoRA), or a checkpoint in one;
            None to add none.
        adapter_scale: a factor on the adapter's updates; None for 1.
        device: where its engine computes: "cuda", an NVIDIA GPU; "cpu", without one; or "auto", a
            GPU if there is one.
        xla: whether XLA compiles its searches; see search.engines.xla_programs.programs_for.
        engine: what computes it: "tensorflow"; "ctranslate2"; or "auto", CTranslate2 where it can.
        argument: the caller's name for `path`, for errors.

    Raises:
        InputError: for anything but a path or a list of paths, such as a Keras model; for an
            adapter of an ensemble; for a scale that is negative or not finite; and for an unknown
            device, value of `xla` or engine.
    """

    path: AnyPath | Sequence[AnyPath]
    checkpoint: str | None = None
    adapter: AnyPath | None = None
    adapter_scale: float | None = None
    device: str = "auto"
    xla: str = "auto"
    engine: str = "auto"
    argument: str = "path"

    def __post_init__(self):
        _check_path(self.path, self.argument)
        scale = self.adapter_scale
        is_amount = scale is None or 0 <= scale < math.inf
        require(is_amount, "adapter_scale", "must be at least 0 and finite", shown(scale))
        rule = f"must be one of {', '.join(DEVICES)}"
        require(self.device in DEVICES, "device", rule, shown(self.device))
        require(self.xla in XLA, "xla", f"must be one of {', '.join(XLA)}", shown(self.xla))
        rule = f"must be one of {', '.join(ENGINES)}"
        require(self.engine in ENGINES, "engine", rule, shown(self.engine))
        if len(self.paths) > 1:
            rule = "must be used with one model, not with an ensemble"
            require(self.adapter is None, "adapter", rule, self.adapter)
            require(scale is None, "adapter_scale", rule, scale)

    @property
    def paths(self) -> list[AnyPath]:
        """The path of each model."""
        return [self.path] if isinstance(self.path, str | os.PathLike) else list(self.path)


def _check_path(path: Any, argument: str) -> None:
    rule = (
        "must be a keras model in a file: save it next to its vocabulary files with model.save, as "
        "FOLDER/model.keras, and load that"
    )
    keras = sys.modules.get("keras")  # without it, there is no such model
    require(keras is None or not isinstance(path, keras.Model), argument, rule, shown(path))
    is_single = isinstance(path, str | os.PathLike)
    paths = [path] if is_single else path
    is_list = isinstance(paths, Sequence) and len(paths) > 0
    are_paths = is_list and all(isinstance(one, str | os.PathLike) for one in paths)
    require(are_paths, argument, "must be a path, or a list of paths", shown(path))
    require(all(os.fspath(one) for one in paths), argument, "must be given", "''")
