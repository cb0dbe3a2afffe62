import json

import pytest

from keras_transformer.errors import InputError
from keras_transformer.training.checkpoint_index import (
    CheckpointEntry,
    CheckpointIndex,
    Progress,
    read_index,
    write_index,
)
from keras_transformer.training.checkpoint_info import CheckpointInfo
from keras_transformer.training.step_sums import StepSums


def test_an_index_is_read_as_it_was_written(any_folder):
    assert read_index(any_folder) == CheckpointIndex()
    progress = Progress(StepSums(loss=2.5, skipped=1.0), 3, 1.5, 2)
    validation = {"loss": 2.0, "bleu": 31.5, "perplexity": None}
    entries = (
        CheckpointEntry("step-00000000", 0),
        CheckpointEntry("step-00000007", 7, 9.5, progress, validation),
    )
    (any_folder / "checkpoints").mkdir()
    write_index(any_folder, CheckpointIndex(entries, "bleu"))
    assert read_index(any_folder) == CheckpointIndex(entries, "bleu")
    content = json.loads((any_folder / "checkpoints" / "index.json").read_text())
    imported, trained = content["checkpoints"]
    assert imported == {"name": "step-00000000", "step": 0}
    assert trained["validation_bleu"] == 31.5
    assert trained["progress"]["sums"]["loss"] == 2.5


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        ([0.0] * 9, r"progress.sums must be of type dict"),
        ({"loss": 1.0}, r"progress.sums.smoothed_loss must be given"),
        (dict.fromkeys(StepSums._fields, "x"), "sums.smoothed_loss must be of type float"),
    ],
)
def test_sums_of_another_kind_are_refused(tmp_path, sums, message):
    progress = {"sums": sums, "summed_steps": 3, "summed_seconds": 1, "validations_since_best": 0}
    entry = {"name": "step-7", "step": 7, "progress": progress}
    (tmp_path / "checkpoints").mkdir()
    path = tmp_path / "checkpoints" / "index.json"
    path.write_text(json.dumps({"checkpoints": [entry]}))
    with pytest.raises(InputError, match=message):
        read_index(tmp_path)


def test_what_is_not_known_of_weights_is_left_out():
    assert CheckpointInfo("step-7", 7).to_json() == {"checkpoint": "step-7", "step": 7}
    whole = CheckpointInfo("average:2", 7, 2, 1.5).to_json()
    assert whole == {
        "checkpoint": "average:2",
        "step": 7,
        "averaged": 2,
        "validation_loss": 1.5,
    }
