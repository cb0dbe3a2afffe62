"""docs/examples/Dockerfile, without a builder: what it copies and installs is there."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def instructions():
    """(instruction, its words) of every line, comments left out."""
    text = (ROOT / "docs" / "examples" / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ").splitlines()
    return [(words[0], words[1:]) for words in map(shlex.split, lines) if words]


def copied(instructions):
    return [name for word, names in instructions if word == "COPY" for name in names[:-1]]


def extras(text):
    return {name for names in re.findall(r"\.\[([\w,-]+)\]", text) for name in names.split(",")}


def test_what_it_copies_exists(instructions):
    assert copied(instructions)
    for name in copied(instructions):
        assert (ROOT / name).exists(), name


def test_it_copies_what_the_distribution_is_made_of(instructions):
    needed = {"pyproject.toml", "setup.py", "bin", "keras_transformer", "pipelines"}
    needed |= {PROJECT["readme"], *PROJECT["license-files"]}
    needed |= {
        words[number + 1]
        for word, words in instructions
        if word == "RUN"
        for number, given in enumerate(words)
        if given in ("--constraint", "--requirement")
    }
    assert needed == set(copied(instructions))


def test_its_extras_exist_and_are_enough_for_readme(instructions):
    installed = extras(" ".join(" ".join(words) for _, words in instructions))
    assert installed <= set(PROJECT["optional-dependencies"])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert extras(readme) <= installed


def test_every_stage_is_that_of_a_command(instructions):
    """The guides build the last stage and the one that they name; both run the programs."""
    names = {words[2] for word, words in instructions if word == "FROM" and len(words) == 3}
    assert sum(word == "ENTRYPOINT" for word, _ in instructions) == 2
    targets = set()
    for guide in ("install", "give"):
        text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text(encoding="utf-8")
        (command,) = re.findall(r"docker build .*", text)
        assert "--file docs/examples/Dockerfile" in command
        targets |= set(re.findall(r"--target (\S+)", command))
    assert targets == {"runtime"} and targets <= names


def test_every_image_runs_as_a_user_and_is_asked_for_its_health(instructions):
    entries = [number for number, (word, _) in enumerate(instructions) if word == "ENTRYPOINT"]
    for number in entries:
        last = dict(instructions[number - 2 : number])
        assert last["USER"] == ["translator"] and "/health')" in last["HEALTHCHECK"][-1]
    users = [words for word, words in instructions if word == "RUN" and words[0] == "useradd"]
    assert [words[-1] for words in users] == ["translator"]
