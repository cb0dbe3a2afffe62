"""The commands of the guide "Reproduce the paper", each run in small on a stand-in for WMT14."""

import re
import shlex
from pathlib import Path

import pytest
import tensorflow_datasets as tfds

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = [
    "the cat sat on the mat",
    "a dog ran to the house",
    "big red cats and small dogs",
    "no one saw it",
]
# Appended, so that they replace what the command says.
SMALL = {
    "prepare_data": ["--vocab_size={vocab_size}", "--tfds_data_dir={tfds}"],
    "train": [
        *("--train_steps=2", "--tokens_per_batch=256", "--strategy=one_device"),
        *("--config=num_layers=1", "--config=d_model=8", "--config=d_ff=8", "--config=num_heads=2"),
        "--sample_sentences=0",
    ],
    "evaluate": ["--checkpoint=average:1", "--beam_size=1"],
    "average_checkpoints": ["--last=1"],
}


class Wmt14Translate(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Writes a few sentences where TFDS' own wmt14_translate looks for its data."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = tuple(tfds.core.BuilderConfig(name=name) for name in ("de-en", "fr-en"))
    code_path = None

    def _info(self):
        features = tfds.features.Translation(languages=self.builder_config.name.split("-"))
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, download_manager):
        return {split: self._generate_examples() for split in ("train", "validation", "test")}

    def _generate_examples(self):
        other = self.builder_config.name.split("-")[0]
        for number, sentence in enumerate(SENTENCES * 3):
            yield number, {other: sentence.upper(), "en": sentence}


@pytest.fixture(scope="module")
def commands():
    """[program, argument, ...] of each shell line in the section, in order."""
    guide = (ROOT / "docs" / "guides" / "paper.md").read_text(encoding="utf-8")
    section = re.search(r"^# Reproduce.*?(?=^## )", guide, re.MULTILINE | re.DOTALL)[0]
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines]
    for words in filter(None, found):
        assert words[0] == "python" and re.fullmatch(r"bin/\w+\.py", words[1]), words
    return [[Path(words[1]).stem, *words[2:]] for words in found if words]


@pytest.mark.slow
def test_every_line_runs(commands, load_program, tmp_path):
    for name in ("de-en", "fr-en"):
        Wmt14Translate(config=name, data_dir=tmp_path / "tfds").download_and_prepare()
    results = []
    for name, *arguments in commands:
        words = [word.replace("=runs/", f"={tmp_path}/") for word in arguments]
        vocab_size = 80 if "--tokenizer=wordpiece" in words else 300
        words += [
            word.format(tfds=tmp_path / "tfds", vocab_size=vocab_size) for word in SMALL[name]
        ]
        results.append((name, load_program(name, *words).main()))
    for name, result in results:
        if name == "train":
            assert result["step"] == 2
        elif name == "evaluate":
            assert result["sentences"] == len(SENTENCES) * 3
            assert result["paper_bleu"] >= 0
    assert {path.parent.name for path in tmp_path.glob("*/*/evaluation-test.json")} == {
        *("base", "big")
    }


def test_what_the_lines_say(commands):
    """Both pairs, base and big, with the paper's steps, vocabularies and averages."""
    values = [
        (name, dict(word.removeprefix("--").split("=", 1) for word in words))
        for name, *words in commands
    ]
    prepared = {
        given["data_dir"]: (given["target_language"], given.get("tokenizer"), given["vocab_size"])
        for name, given in values
        if name == "prepare_data"
    }
    assert set(prepared.values()) == {("de", None, "37000"), ("fr", "wordpiece", "32000")}
    trained = {
        given["model_dir"]: (prepared[given["data_dir"]][0], given["preset"], given["train_steps"])
        for name, given in values
        if name == "train"
    }
    assert set(trained.values()) == {
        *(("de", "base", "100000"), ("de", "big", "300000")),
        *(("fr", "base", "100000"), ("fr", "big_en_fr", "300000")),
    }
    scored = {
        trained[given["model_dir"]][:2]: given["checkpoint"]
        for name, given in values
        if name == "evaluate"
    }
    assert scored == {
        **{("de", "base"): "average:5", ("fr", "base"): "average:5"},
        **{("de", "big"): "average:20", ("fr", "big_en_fr"): "average:20"},
    }
