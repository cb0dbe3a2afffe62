"""Files of any content: each reader gives what it reads, or an InputError of one line."""

import contextlib
import dataclasses
import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig, SamplingConfig
from keras_transformer.core.training.checkpoint_files import CheckpointInfo, StepSums
from keras_transformer.core.training.checkpoints import CheckpointStore
from keras_transformer.core.training.curves import _cut
from keras_transformer.core.training.model_directory import read_description
from keras_transformer.core.training.run_state import RunState
from keras_transformer.kit.paper.tables import table_2, table_3, table_4
from keras_transformer.kit.paper.trained_rows import measured_table, read_measured, trained_row
from keras_transformer.support.errors import InputError
from keras_transformer.use.store.card import CARD, FORMAT_VERSION, read_card
from keras_transformer.use.store.results import read_results, read_training
from pipelines.prepare import metadata
from pipelines.prepare.metadata import read_metadata
from pipelines.sample_text import sample_files
from tests.given_answers import card_of
from tests.refusals import check_line

SOURCE, TARGET = sample_files("validation")
TEXT = [f"--train_source={SOURCE}", f"--train_target={TARGET}"]
repeatable = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
HUGE = [10**15, -(10**15), 10**400, -1, 0, float("nan"), float("inf"), 1e308, True, None]
NAMES = ["../x", "/etc/passwd", "..", "", "a\nb", "\ud800", "x" * 100, "\x00", "vocabulary.txt"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
scalars |= st.sampled_from(HUGE + NAMES)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(content, path=()):
    """The paths to all values within JSON."""
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inner:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


@st.composite
def damaged(draw, content):
    """The bytes of a JSON file after some damage to it."""
    whole = json.dumps(content).encode()
    kind = draw(
        st.sampled_from(["value", "value", "value", "removed", "bytes", "cut", "deep", "any"])
    )
    if kind in ("value", "removed"):
        changed = json.loads(whole)
        *path, last = draw(st.sampled_from(list(places(content))))
        within = changed
        for key in path:
            within = within[key]
        if kind == "removed":
            del within[last]
        else:
            within[last] = draw(anything)
        return json.dumps(changed).encode()
    if kind == "any":
        return json.dumps(draw(anything)).encode()
    if kind == "deep":
        return b'{"a":' * 100_000
    place = draw(st.integers(0, len(whole) - 1))
    if kind == "cut":
        return whole[:place]
    return whole[:place] + draw(st.binary(min_size=1, max_size=3)) + whole[place + 1 :]


RECORD = "model/checkpoints/step-00000007.json"
FACTS = {
    **{"format_version": 4, "model": "f", "best_metric": "loss"},
    **{"step": 7, "seconds": 9.5, "validation": {"loss": 2.5, "bleu": 30.0}},
    "progress": {
        "sums": dict.fromkeys(StepSums._fields, 1.0),
        "summed_steps": 3,
        "summed_seconds": 1.5,
        "validations_since_best": 0,
    },
}
FOUND = {"bleu": 39.1, "perplexity": 4.5, "checkpoint": "step-00000007", "step": 7}
FOUND |= {"data_dir": "d", "dataset": "files", "languages": ["en", "de"], "beam_size": 4}


@pytest.fixture(scope="module")
def model_dir(untrained, tmp_path_factory):
    """A model directory with all that programs write about it."""
    folder = tmp_path_factory.mktemp("damaged") / "model"
    shutil.copytree(untrained, folder)
    (folder / "checkpoints/step-00000007.json").write_text(json.dumps(FACTS))
    for split in ("test", "validation"):
        (folder / f"evaluation-{split}.json").write_text(json.dumps(FOUND))
    return folder


def use_records(folder):
    store = CheckpointStore(folder)
    read_training(folder)
    _ = store.best, [store.path(record) for record in store.records]
    return [RunState.restored(record).summarize() for record in store.records]


def use_row(folder):
    row = json.loads(json.dumps(trained_row(folder)))
    return measured_table([row]), table_2([row]), table_3([row]), table_4([row])


def use_measured(folder):
    rows = read_measured(folder / "table.json")
    return measured_table(rows), table_2(rows), table_3(rows), table_4(rows)


def use_log(folder):
    _cut(folder / "training_log.jsonl", 5)


def use_metadata(folder):
    metadata = read_metadata(folder)
    json.dumps(dataclasses.asdict(metadata))
    return metadata.splits["train"].longest


@pytest.fixture(params=[20, pytest.param(200, marks=pytest.mark.slow)])
def count(request):
    """How many damages of a file are tried."""
    return request.param


def check(count, reader, folder, name, before):
    """Reads damaged files, and the whole one again."""

    @settings(repeatable, max_examples=count)
    @given(damaged(json.loads(before)))
    def reads(content):
        (folder / name).write_bytes(content)
        with contextlib.suppress(InputError):
            try:
                reader(folder)
            except InputError as error:
                assert error.received is not None and str(folder) in str(error)
                assert "\n" not in str(error) and len(str(error)) < 1000
                raise

    reader(folder)
    try:
        reads()
    finally:
        (folder / name).write_bytes(before)


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("config.json", read_description),
        ("checkpoints/step-00000007.json", use_records),
        ("evaluation-validation.json", use_row),
        ("evaluation-test.json", lambda folder: read_results(folder, "test")),
    ],
)
def test_model_directory(count, model_dir, name, reader):
    check(count, reader, model_dir, name, (model_dir / name).read_bytes())


def test_log_of_training(count, model_dir):
    lines = b'{"event": "training", "step": 3}\n'
    (model_dir / "training_log.jsonl").write_bytes(lines)
    check(count, use_log, model_dir, "training_log.jsonl", lines)


def test_measured_rows(count, model_dir):
    (model_dir / "table.json").write_text(json.dumps([trained_row(model_dir)]))
    check(count, use_measured, model_dir, "table.json", (model_dir / "table.json").read_bytes())


def test_metadata(count, prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "data")
    path = tmp_path / "data" / "metadata.json"
    check(count, use_metadata, tmp_path / "data", "metadata.json", path.read_bytes())


def test_card(count, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"123")
    card = card_of(
        TransformerConfig(100),
        DecodingConfig(forbidden_phrases=("a",), sampling=SamplingConfig()),
        task_options={"words": "tags"},
        checkpoint=CheckpointInfo("step-00000007", 7),
        ensemble=(CheckpointInfo("a"), CheckpointInfo("b")),
    )
    whole = {"format_version": FORMAT_VERSION, **card.to_json(), "files": {"saved_model.pb": 3}}
    (tmp_path / CARD).parent.mkdir()
    (tmp_path / CARD).write_text(json.dumps(whole))
    check(count, read_card, tmp_path, CARD, (tmp_path / CARD).read_bytes())


@pytest.mark.parametrize(
    ("program", "flags", "name"),
    [
        ("train", ["--data_dir={d}", "--model_dir={d}/model"], "data/metadata.json"),
        ("prepare_data", ["--dataset=files", "--data_dir={d}", *TEXT], "data/metadata.json"),
        ("sweep", ["--data_dir={d}", "--model_dir={d}/sweep"], "data/metadata.json"),
        ("evaluate", ["--data_dir={d}", "--model_dir={m}"], "model/config.json"),
        ("translate", ["--model_dir={m}"], "model/config.json"),
        ("serve", ["--model_dir={m}"], "model/config.json"),
        ("attention", ["--model_dir={m}", "--source=a", "--output={d}/x"], "model/config.json"),
        ("translate", ["--model_dir={m}"], RECORD),
        ("export", ["--model_dir={m}", "--export_dir={d}/x"], RECORD),
        ("average_checkpoints", ["--model_dir={m}"], RECORD),
        ("paper_tables", ["--model_dirs={m}"], "model/evaluation-test.json"),
    ],
)
def test_programs_name_the_file(call_program, prepared, model_dir, tmp_path, program, flags, name):
    places = {"d": tmp_path / "data", "m": tmp_path / "model"}
    for source, target in zip((prepared, model_dir), places.values(), strict=True):
        shutil.copytree(source, target)
    version = metadata.FORMAT_VERSION if name == "data/metadata.json" else 1
    content = {"format_version": version, "f1": "x"}
    (tmp_path / name).write_text(json.dumps(content))
    done = call_program(program, *(flag.format(**places) for flag in flags))
    assert done.code == 1 and not done.output
    check_line(done.errors, tmp_path / name)
