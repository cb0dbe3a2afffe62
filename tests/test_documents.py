"""README, BUILD_NOTES and CONTRIBUTING name files, headings and flags that exist."""

import re
import shlex

import pytest
from absl import flags

import keras_transformer
from tests.program_fixtures import BIN, loaded

ROOT = BIN.parent
DOCUMENTS = ["README.md", "BUILD_NOTES.md", "CONTRIBUTING.md"]
# Of saved_model_cli, TensorFlow Serving, TensorBoard and the benchmarks; one that was removed.
OTHER_FLAGS = {
    *("dir", "tensorflow_intra_op_parallelism", "growth", "opennmt_python", "work_dir", "logdir"),
    *("skip_bad_records", "flagfile"),
}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def program_calls(text):
    """(program, arguments) of every command of a program in the document's shell blocks."""
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    for line in blocks.splitlines():
        words = shlex.split(line, comments=True)
        starts = [number for number, word in enumerate(words) if re.match(r"bin/\w+\.py$", word)]
        for start in starts:
            yield words[start].removeprefix("bin/").removesuffix(".py"), words[start + 1 :]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(name)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        if anchor:
            assert anchor in anchors(text_of(path or name)), link


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_files_exist(name):
    """A path is that of the repository or of the library: `bin/train.py`, `training/step.py`."""
    named = set(re.findall(r"(?<![\w./])[a-z_]+/[\w/]+\.(?:py|json|html|png|svg)\b", text_of(name)))
    made = {path for path in named if path.startswith(("docs/api/", "runs/"))}
    for path in named - made:
        assert (ROOT / path).exists() or (ROOT / "keras_transformer" / path).exists(), path


@pytest.fixture(scope="module")
def flags_of():
    """Program -> its flags."""
    found = {}
    for path in sorted(BIN.glob("*.py")):
        if path.stem not in ("__main__", "command"):
            with loaded(path.stem):
                found[path.stem] = {*flags.FLAGS}
    return found


def test_flags_of_the_commands_exist(flags_of):
    for program, words in program_calls(text_of("README.md")):
        given = {word[2:].partition("=")[0] for word in words if word.startswith("--")}
        assert given <= flags_of[program] | {"help"}, (program, words)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_flags_in_the_text_exist(name, flags_of):
    prose = re.sub(r"```.*?```", "", text_of(name), flags=re.DOTALL)
    known = set().union(*flags_of.values()) | OTHER_FLAGS
    assert set(re.findall(r"`[^`\n]*?--([a-z]\w+)", prose)) <= known


def test_make_targets_exist():
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.M)) | {"test-hard"}
    for name in DOCUMENTS:
        assert set(re.findall(r"(?:^|`)make ([\w-]+)", text_of(name), re.M)) <= targets


def test_the_public_names_are_listed():
    section = re.search(r"^## As a library.*?(?=^## )", text_of("README.md"), re.M | re.DOTALL)[0]
    table = section[section.index("| model |") :]
    assert sorted(re.findall(r"`(\w+)`[,| ]", table)) == sorted(keras_transformer.__all__)
