"""Runs every command and every sample of Python of the documents, on little data: make commands.

    python -m tests.pages.run_commands                   # all pages
    python -m tests.pages.run_commands guides/paper      # README, and this page

The shell blocks of a page are given to bash in order, in a folder with the files that they name
(files.py), as they stand, except that a loop over three seeds has one. There, `python` starts the
program with fewer steps and a smaller model (small.py). A sample of Python is run in a process of
its own in the same folder. README and the installation page are run by new interpreters, all others
by processes that have imported TensorFlow already (fork_server.py), two pages at a time. What
cannot run here is named, with the reason.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.pages import files, fork_server, small

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600  # that a block may take
LANES = 2  # pages at a time
PORT = 8501  # of the first lane; the next ones have the ports after it
# What a new user types, in interpreters of their own; so is README, which runs before all others.
REAL_INTERPRETERS = ("guides/install",)
# The pages that take longest. They begin first, so that no lane is left with one in the end.
LONG = (
    *("guides/little-data", "guides/many-languages", "guides/paper", "guides/results"),
    "measurements/transfer",
)
MINE, DATA = "runs/mine/model", "runs/mine/data"  # README's
# Page -> folders that its commands read and do not make: copies of what README's commands make.
COPIES = {
    "guides/little-data": {"runs/en-de/model": MINE, "runs/de-en/model": MINE},
    "guides/paper": {"runs/multi30k-4k/data": DATA},
    "guides/results": {"runs/student/model": MINE, "runs/student/data": DATA},
    "guides/search": {"runs/mine/other": MINE},
    "measurements/decoding": {"runs/multi30k/model": MINE},
    "measurements/documents": {"runs/mix/model": MINE},
    "measurements/transfer": {"own": DATA},
}


class Block(NamedTuple):
    """A block of code of a page: its language, "bash" or "python", and its text."""

    language: str
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="such as README or guides/paper; all if none")
    known = pages()
    wanted = parser.parse_args().pages or list(known)
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        sys.exit(f"error: pages must be of {', '.join(known)}. Received: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # README's commands run first. Every page then has a copy of the folder that they leave.
        readme = folder / "README"
        readme.mkdir()
        files.write(readme)
        small.write_shims(readme / "shims")
        run_page("README", readme, known["README"], {})
        others = [page for page in wanted if page != "README"]
        others.sort(key=lambda page: page not in LONG)
        with fork_server.running(folder) as server:
            run_in_lanes(others, folder, known, server)
    print("every command ended well")


def run_in_lanes(
    wanted: list[str], folder: Path, known: dict[str, list[Block]], server: Path
) -> None:
    """Runs pages, each in a copy of README's folder, a page at a time in each lane.

    A lane has a port of its own. After a failure no further page begins.
    """
    waiting, failures = iter(wanted), []

    def run_lane(port: int) -> None:
        for page in waiting:
            if failures:
                return
            place = folder / page
            shutil.copytree(folder / "README", place, symlinks=True)
            for copy, original in COPIES.get(page, {}).items():
                shutil.copytree(place / original, place / copy)
            environment = {"COMMANDS_PORT": str(port)}
            if page not in REAL_INTERPRETERS:
                environment[fork_server.VARIABLE] = str(server)
            try:
                run_page(page, place, known[page], environment)
            except BlockError as error:
                failures.append(error)
            shutil.rmtree(place)

    with ThreadPoolExecutor(LANES) as lanes:
        for lane in [lanes.submit(run_lane, PORT + number) for number in range(LANES)]:
            lane.result()
    if failures:
        sys.exit("\n".join(map(str, failures)))


def pages() -> dict[str, list[Block]]:
    """The blocks of every page that has some; README is the first of them."""
    found = {"README": blocks_of(ROOT / "README.md")}
    found["CONTRIBUTING"] = blocks_of(ROOT / "CONTRIBUTING.md")
    # The other pages of the reference have no commands.
    for pattern in ("guides/*.md", "measurements/*.md", "reference/formats.md"):
        for file in sorted((ROOT / "docs").glob(pattern)):
            found[f"{file.parent.name}/{file.stem}"] = blocks_of(file)
    return {page: blocks for page, blocks in found.items() if blocks}


def blocks_of(file: Path) -> list[Block]:
    """The blocks of bash and Python of a page: not those within another block."""
    text = file.read_text(encoding="utf-8")
    fences = re.findall(r"^(`{3,})(\w*)\n(.*?)^\1$", text, re.M | re.DOTALL)
    return [Block(language, text) for _, language, text in fences if language in ("bash", "python")]


class BlockError(Exception):
    """A block of a page has failed: its page, its text and its output."""


def run_page(page: str, folder: Path, blocks: list[Block], environment: dict[str, str]) -> None:
    """Runs the blocks of a page in its folder.

    Args:
        environment: variables for its commands, beside those of this process.

    Raises:
        BlockError: a block has failed.
    """
    variables = {**os.environ, **environment}
    try:
        for number, block in enumerate(blocks, start=1):
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
            command = ["echo"]  # a file that another command starts
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
