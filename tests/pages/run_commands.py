"""Runs every command and Python sample in the documentation, on little data: make commands.

    python -m tests.pages.run_commands                   # all pages
    python -m tests.pages.run_commands guides/paper      # README, and this page

Bash runs the shell blocks of a page in order, in a folder with the files that they name (files.py).
It runs them as they stand, except that a loop over three seeds takes only one. In that folder,
`python` starts the program with fewer steps and a smaller model (small.py). Each Python sample runs
in its own process in the same folder. The installation page runs in new interpreters, all others in
processes that have already imported TensorFlow (fork_server.py), two pages at a time. The Hugging
Face hub is a server on this machine, which has small models under the names of real ones.
Pages that use README's data or models start when it has ended, in a copy of its folder. Commands
that cannot run here are listed, with the reason.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.kit.exchange import hugging_face_files, loopback_hub
from tests.pages import files, fork_server, small

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600  # limit for a block
LANES = 2  # pages at a time
PORT = 8501  # of the first lane; the others use the next ports
README = "README"
REAL_INTERPRETER = "guides/install"  # the page for new users
# The pages that take longest. They start first, so that no lane is left with one at the end.
LONG = (
    *("guides/results", "guides/paper", "guides/existing-model", "guides/library"),
    *("guides/little-data", "guides/search", "guides/fast", "guides/serving"),
)
MADE_BY_README = ("runs/mine", "runs/quickstart")
MINE, DATA = "runs/mine/model", "runs/mine/data"
# Page -> folders that its commands read but do not make: copies of folders that README's make.
COPIES = {
    "docs/diary": {"runs/multi30k/model": MINE, "runs/multi30k/data": DATA, "runs/mix/model": MINE},
    "guides/little-data": {"runs/en-de/model": MINE, "runs/de-en/model": MINE},
    "guides/paper": {"runs/multi30k-4k/data": DATA},
    "guides/results": {"runs/student/model": MINE, "runs/student/data": DATA},
    "guides/search": {"runs/mine/other": MINE},
}
# A block with one of these words is not run, and why.
BLOCKS_NOT_RUN = {"tfds:wmt14_translate": "tests/bin/test_reproduce.py runs it"}


class Block(NamedTuple):
    """A code block on a page: its language, "bash" or "python", and its text."""

    language: str
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="such as README or guides/paper (default: all)")
    known = pages()
    wanted = parser.parse_args().pages or list(known)
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        sys.exit(f"error: pages must be of {', '.join(known)}. Received: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        files.write(folder / "files")
        small.write_shims(folder / "files/shims")
        names = (
            "Helsinki-NLP/opus-mt-de-en",
            "alirezamsh/small100",
            "facebook/m2m100_418M",
            "facebook/nllb-200-distilled-600M",
        )
        models = {name: folder / "hub" / name for name in names}
        for path in models.values():
            path.mkdir(parents=True)
        hugging_face_files.write_model(models[names[0]], "h5")
        variants = ("SMaLL-100", "M2M-100", "NLLB-200")
        for name, variant in zip(names[1:], variants, strict=True):
            hugging_face_files.write_m2m100(models[name], variant)
        with fork_server.running(folder) as server, loopback_hub.serving(models) as hub:
            os.environ |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "cache")}
            run_in_lanes(wanted, folder, known, server)
    print("every command ended well")


def run_in_lanes(
    wanted: list[str], folder: Path, known: dict[str, list[Block]], server: Path
) -> None:
    """Runs README and pages, one at a time in each lane.

    README and the pages that use nothing of its come first. Each lane has its own port. After a
    failure, no further page starts.
    """
    others = sorted(
        set(wanted) - {README},
        key=lambda page: (uses_readme(page, known[page]), page not in LONG, page),
    )
    waiting = iter([README, *others])
    readme_ended, failures = threading.Event(), []

    def run_lane(port: int) -> None:
        for page in waiting:
            after_readme = uses_readme(page, known[page])
            if after_readme:
                readme_ended.wait()
            if failures:
                return
            place = folder / page
            shutil.copytree(folder / (README if after_readme else "files"), place, symlinks=True)
            for copy, original in COPIES.get(page, {}).items():
                shutil.copytree(place / original, place / copy)
            environment = {"COMMANDS_PORT": str(port)}
            if page != REAL_INTERPRETER:
                environment[fork_server.VARIABLE] = str(server)
            try:
                run_page(page, place, known[page], environment)
            except BlockError as error:
                failures.append(error)
            finally:
                if page == README:
                    readme_ended.set()
            if page != README:
                shutil.rmtree(place)

    with ThreadPoolExecutor(LANES) as lanes:
        for lane in [lanes.submit(run_lane, PORT + number) for number in range(LANES)]:
            lane.result()
    if failures:
        sys.exit("\n".join(map(str, failures)))


def uses_readme(page: str, blocks: list[Block]) -> bool:
    """Whether another page than README reads what README's commands have made."""
    texts = [text for _, text in blocks]
    named = any(name in text for name in MADE_BY_README for text in texts)
    return page != README and (page in COPIES or named)


def pages() -> dict[str, list[Block]]:
    """Returns the blocks of every page that has any, README first."""
    found = {README: blocks_of(ROOT / "README.md")}
    # CONTRIBUTING has targets of make; the other pages of the reference have no commands.
    for pattern in ("diary.md", "guides/*.md", "reference/formats.md"):
        for file in sorted((ROOT / "docs").glob(pattern)):
            found[f"{file.parent.name}/{file.stem}"] = blocks_of(file)
    return {page: blocks for page, blocks in found.items() if blocks}


def blocks_of(file: Path) -> list[Block]:
    """Returns the bash and Python blocks of a page, except those inside another block."""
    text = file.read_text(encoding="utf-8")
    fences = re.findall(r"^(`{3,})(\w*)\n(.*?)^\1$", text, re.M | re.DOTALL)
    return [Block(language, text) for _, language, text in fences if language in ("bash", "python")]


class BlockError(Exception):
    """A block failed; the message has its page, its text and its output."""


def run_page(page: str, folder: Path, blocks: list[Block], environment: dict[str, str]) -> None:
    """Runs the blocks of a page in its folder.

    Args:
        environment: variables for its commands, in addition to this process's.

    Raises:
        BlockError: if a block fails.
    """
    variables = {**os.environ, **environment}
    try:
        for number, block in enumerate(blocks, start=1):
            why = next((why for word, why in BLOCKS_NOT_RUN.items() if word in block.text), None)
            if why:
                print(f"    not run: {page}, block {number}: {why}")
                continue
            begun = time.monotonic()
            done = run_block(block, folder, variables)
            seconds = time.monotonic() - begun
            reasons = [f"    {line}\n" for line in re.findall(r"^not run: .*", done.stderr, re.M)]
            print(f"{''.join(reasons)}{page}, block {number}: {seconds:.0f} s", flush=True)
            if done.returncode != 0:
                output = f"{done.stdout}\n{done.stderr}\nexit code {done.returncode}"
                raise BlockError(f"{page}, block {number}:\n{block.text}\n{output}")
    finally:
        small.stop_server(folder)


def run_block(
    block: Block, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess:
    if block.language == "python":
        command = ["python", "-c", block.text]
    else:
        text = block.text.replace("for seed in 1 2 3;", "for seed in 1;")
        text = text.replace("/usr/bin/time -v ", "")  # not every system has it
        command = ["bash", "-e", "-o", "pipefail", "-c", text]
        if text.startswith("#!"):
            command = ["echo"]  # a file that another command runs
    path = f"{folder / 'shims'}:{environment['PATH']}"
    return subprocess.run(
        [shutil.which(command[0], path=path), *command[1:]],
        cwd=folder,
        env={**environment, "PATH": path, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
