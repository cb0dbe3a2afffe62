import json

import pytest

from keras_transformer.core.training.checkpoint_files import (
    CheckpointRecord,
    Progress,
    StepSums,
    read_record,
    read_records,
    weights_digest,
    write_record,
)
from tests.refusals import refused


@pytest.mark.tensorflow
def test_records_are_read_as_they_were_written(any_folder):
    assert read_records(any_folder) == []
    progress = Progress(StepSums(loss=2.5, skipped=1.0), 3, 1.5, 2)
    validation = {"loss": 2.0, "bleu": 31.5, "perplexity": None}
    records = [
        CheckpointRecord("step-00000000", 0, model="f"),
        CheckpointRecord("step-00000007", 7, "f", 9.5, 0.5, progress, validation, "bleu"),
    ]
    directory = any_folder / "checkpoints"
    directory.mkdir()
    average = CheckpointRecord("average-2-step-00000007", 7, "f")
    for record in (records[1], records[0], average):
        write_record(directory / f"{record.name}.json", record)
    assert read_records(any_folder) == records
    assert read_record(directory / average.name) == average
    imported, trained = (
        json.loads((directory / f"{record.name}.json").read_text()) for record in records
    )
    assert imported == {"format_version": 4, "model": "f", "step": 0, "validation": {}}
    assert trained["validation"]["bleu"] == 31.5
    assert trained["progress"]["sums"]["loss"] == 2.5


def test_a_record_that_cannot_be_used_is_named_with_what_to_do(tmp_path):
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    record = CheckpointRecord("step-00000007", 6, model="f")
    write_record(directory / "step-00000007.json", record)
    file = directory / "step-00000007.json"
    with refused(None, 6, file) as caught:
        read_records(tmp_path)
    assert "step-00000007.*" in caught.value.received
    file.write_text("{")
    with refused(None, "step-00000007.*", file, "JSON"):
        read_records(tmp_path)


def test_a_digest_is_that_of_the_weights_chosen(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name, checksums in (("step-1", b"a"), ("step-2", b"b")):
        (folder / f"{name}.index").write_bytes(checksums)
        (folder / f"{name}.json").write_bytes(b"{}")
        (folder / f"{name}.data-00000-of-00001").write_bytes(b"weights")
    choices = ["latest", "average:2", "step-1", "step-2", "step-1,step-2", str(folder / "step-1")]
    before = {choice: weights_digest(tmp_path, choice) for choice in [*choices, "", "/"]}
    assert len(set(before.values())) == 8
    (folder / "step-2.index").write_bytes(b"c")
    (folder / "writing-step-3.index").write_bytes(b"")
    after = {choice: weights_digest(tmp_path, choice) for choice in choices}
    changed = {choice for choice in choices if after[choice] != before[choice]}
    assert changed == {"latest", "average:2", "step-2", "step-1,step-2"}
