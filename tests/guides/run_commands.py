"""Runs every command of the guides, in order, on a few made-up sentences: make commands.

    python tests/guides/run_commands.py             # all guides
    python tests/guides/run_commands.py parsing     # README's and this one's

Each block of shell lines is given to bash in a folder with the files that it names, as it stands,
except that a loop over three seeds has one. There, `python` is this file, which starts the program
with fewer steps and a smaller model (`smaller`). What cannot run here (`NOT_RUN`) is named when it
is come to.
"""

import argparse
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# README's commands run first. Every guide then has a copy of the folder that they leave.
# Guide -> model directories that it speaks of and does not make: copies of README's model.
GUIDES: dict[str, tuple[str, ...]] = {
    "serving": (),
    "documents": (),
    "own-text": (),
    "clean-text": (),
    "little-data": ("runs/large/model", "runs/en-de/model"),
    "large-corpora": (),
    "fast": (),
    "existing-model": (),
    "many-languages": (),
    "parsing": (),
    "results": (),
}
# Commands and arguments that are not run, and why.
NOT_RUN = {
    "make": "targets have tests of their own, or take their time",
    "pip": "it would change the environment",
    "docker": "there is none",
    "hf": "it would download a model",
    "benchmarks/training.py": "its time does not depend on the data",
    "benchmarks/pipeline.py": "it makes 4.5 million pairs",
    "benchmarks/decoding.py": "its time does not depend on the data",
    "benchmarks/parsing_baselines.py": "it needs treebanks of some size",
    "--gold=23.mrg.gz": "a parser of two steps takes punctuation for words",
    "--runner=beam": "Apache Beam has an environment of its own",
    "v1/models": "TF Serving's endpoint",
    "/detect": "the detector is an extra",
}
TINY = ("num_layers=1", "d_model=8", "d_ff=8", "num_heads=2")
PORT = 8501
SECONDS = 300  # that a block may take


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("guides", nargs="*", help=f"of {', '.join(GUIDES)}; all if none")
    guides = parser.parse_args().guides or list(GUIDES)
    unknown = sorted(set(guides) - set(GUIDES))
    if unknown:
        sys.exit(f"error: guides must be of {', '.join(GUIDES)}. Received: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "README"
        base.mkdir()
        prepare(base)
        run_guide("README", base)
        shutil.copytree(base / "runs/mine/model", base / "runs/mine/other")
        for guide in guides:
            place = Path(folder) / guide
            shutil.copytree(base, place, symlinks=True)
            for model_dir in GUIDES[guide]:
                shutil.copytree(base / "runs/mine/model", place / model_dir)
            run_guide(guide, place)
    print("every command ended well")


def run_guide(guide: str, folder: Path) -> None:
    """Runs the blocks of a guide in a folder; a block that fails ends this program."""
    try:
        for number, block in enumerate(blocks_of(guide), start=1):
            begun = time.monotonic()
            done = run_block(block, folder)
            seconds = time.monotonic() - begun
            for reason in re.findall(r"^not run: .*", done.stderr, re.M):
                print(f"    {reason}")
            print(f"{guide}, block {number}: {seconds:.0f} s", flush=True)
            if done.returncode != 0:
                sys.exit(f"{block}\n{done.stdout}\n{done.stderr}\nexit code {done.returncode}")
    finally:
        stop_server(folder)


def blocks_of(guide: str) -> list[str]:
    """The shell blocks of a guide: not those within another block."""
    path = ROOT / ("README.md" if guide == "README" else f"docs/guides/{guide}.md")
    fences = re.findall(
        r"^(`{3,})(\w*)\n(.*?)^\1$", path.read_text(encoding="utf-8"), re.M | re.DOTALL
    )
    return [block for _, language, block in fences if language == "bash"]


def run_block(block: str, folder: Path) -> subprocess.CompletedProcess:
    block = block.replace("for seed in 1 2 3;", "for seed in 1;")
    environment = {
        **os.environ,
        "PATH": f"{folder / 'shims'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", block],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )


def prepare(folder: Path) -> None:
    """Writes what the guides' commands read: the programs, text, documents and trees."""
    for name in ("bin", "benchmarks", "tests", "pipelines", "keras_transformer", "constraints.txt"):
        (folder / name).symlink_to(ROOT / name)
    activate = folder / ".venv/bin/activate"  # the environment is active already
    activate.parent.mkdir(parents=True)
    activate.touch()
    write_shims(folder / "shims")
    write_text(folder)
    write_documents(folder)
    write_trees(folder)
    write_marian_model(folder / "opus-mt-de-en")


def write_shims(folder: Path) -> None:
    folder.mkdir()
    for name in ("python", "curl", "make", "pip", "docker", "hf"):
        shim = folder / name
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__)} --as {name} "$@"\n')
        shim.chmod(0o755)


def write_text(folder: Path) -> None:
    """Pairs of sentences under all names that the guides use."""
    from pipelines.sources import GrammarSource

    pairs = [pair for pair in GrammarSource(200, seed=1).pairs("train") if len(pair[0]) < 60][:60]
    # Czech and French are German under another name.
    for language, number in (("en", 0), ("de", 1), ("cs", 1), ("fr", 1)):
        text = "".join(f"{pair[number]}\n" for pair in pairs)
        short = "".join(f"{pair[number]}\n" for pair in pairs[:4])
        for name in ("train", "web", "news", "more"):
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
        for name in ("val", "test", "test_2016", "test_2016_flickr", "newstest2014"):
            (folder / f"{name}.{language}").write_text(short, encoding="utf-8")
        for name in ("train", "val", "test_2016_flickr"):
            content = (folder / f"{name}.{language}").read_bytes()
            (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(content))
    (folder / "sentences.txt").write_text("A man rides a bike.\nHe is old.\n", encoding="utf-8")
    (folder / "phrases.txt").write_text("Hund\n", encoding="utf-8")
    lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
    (folder / "corpus.tsv").write_text(lines, encoding="utf-8")
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>'
        for a, b in pairs
    )
    memory = f'<?xml version="1.0"?><tmx version="1.4"><header/><body>{units}</body></tmx>'
    (folder / "memory.tmx").write_text(memory, encoding="utf-8")
    entries = "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in pairs[:5])
    (folder / "catalogue.po").write_text(CATALOGUE_HEAD + entries, encoding="utf-8")


CATALOGUE_HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def write_documents(folder: Path) -> None:
    page = "# A *red* dog\n\nIt sleeps. See [the page](https://example.com/).\n"
    for name in ("README.md", "notes.md", "letter.txt", "letter.md"):
        (folder / name).write_text(page, encoding="utf-8")
    (folder / "docs").mkdir()
    (folder / "docs" / "one.md").write_text(page, encoding="utf-8")
    html = "<!doctype html><title>A dog</title><p>A <b>red</b> dog sleeps.</p>"
    (folder / "page.html").write_text(html, encoding="utf-8")
    (folder / "docs" / "page.html").write_text(html, encoding="utf-8")
    entry = 'msgid "a red dog"\nmsgstr ""\n'
    (folder / "fr.po").write_text(CATALOGUE_HEAD + entry, encoding="utf-8")
    table = 'id,name,description\n1,dog,"A red dog. It sleeps."\n'
    (folder / "products.csv").write_text(table, encoding="utf-8")


def write_trees(folder: Path) -> None:
    tree = "(S (NP (DT the) (NN {})) (VP (VBZ {})) (. .))\n"
    nouns, verbs = ("dog", "cat", "bird", "child"), ("sleeps", "sings", "runs", "reads")
    trees = "".join(tree.format(noun, verb) for noun in nouns for verb in verbs)
    names = ("02-21.mrg", "22.mrg", "23.mrg", "agreed.mrg", "train.ptb", "dev.ptb", "test.ptb")
    for name in names:
        (folder / f"{name}.gz").write_bytes(gzip.compress(trees.encode()))


def write_marian_model(folder: Path) -> None:
    from tests.importing.marian_files import write_model, write_vocabulary

    vocabulary = folder.with_name("marian-vocabulary")
    vocabulary.mkdir()
    write_vocabulary(vocabulary)
    write_model(vocabulary, folder)


# What the shims do: `python run_commands.py --as NAME ARGUMENT...`.


def shim(name: str, arguments: Sequence[str]) -> int:
    """Runs a command of a block, in small; returns its exit code."""
    reasons = [why for what, why in NOT_RUN.items() if any(what in word for word in arguments)]
    if name in NOT_RUN or reasons:
        reason = NOT_RUN.get(name) or reasons[0]
        print(f"not run: {name} {' '.join(arguments)[:60]}: {reason}", file=sys.stderr)
        return 0
    if name == "curl":
        curl = shutil.which("curl", path="/usr/bin:/bin:/usr/local/bin")
        return subprocess.run([curl, "--fail-with-body", "--silent", *arguments]).returncode
    command = [sys.executable, *smaller(arguments)]
    if "serve" in command[1]:
        return start_server(command)
    return subprocess.run(command).returncode


def smaller(arguments: Sequence[str]) -> list[str]:
    """The arguments of `python`, with few steps, a small model and a small vocabulary.

    Checkpoints are two steps apart where a command says how far they are apart, and what a later
    command says of the checkpoint after 4,000 or 2,000 steps then holds for the one after two.
    """
    found = []
    vocab_size = 300 if "--dataset=treebank" in arguments else 400  # trees have few words
    for word in arguments:
        word = re.sub(r"step-0000[24]000\b", "step-00000002", word)
        word = re.sub(r"\baverage:\d+", "average:1", word)
        word = re.sub(r"^--train_steps=\d+", "--train_steps=2", word)
        word = re.sub(r"^--train_minutes=[\d.]+", "--train_steps=2", word)
        word = re.sub(r"^--checkpoint_steps=\d+", "--checkpoint_steps=2", word)
        word = re.sub(r"^--vocab_size=\d+", f"--vocab_size={vocab_size}", word)
        word = re.sub(r"^decoder_layers=\d+", "decoder_layers=1", word)
        found.append(word)
    program = Path(found[0]).name if found else ""
    if program == "train.py":
        found += ["--tokens_per_batch=600", "--sample_sentences=2"]
        if not any(word.startswith("--train_steps") for word in found):
            found.append("--train_steps=2")
        if not any(word.startswith("--init_from") for word in found):
            found += [f"--config={setting}" for setting in TINY]
    if program == "prepare_data.py" and not any("--vocab" in word for word in found):
        found.append(f"--vocab_size={vocab_size}")
    if program == "documents.py":
        found += ["--lines=20", "--rounds=1"]
    return found


def start_server(command: Sequence[str]) -> int:
    """Starts a server beside the block, in place of the one before it, and waits until it is up."""
    stop_server(Path.cwd())
    with open("server.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    Path("server.pid").write_text(str(process.pid), encoding="utf-8")
    for _ in range(240):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz").read()
            return 0
        except urllib.error.URLError:
            time.sleep(0.5)
        if process.poll() is not None:
            break
    print(Path("server.log").read_text(encoding="utf-8"), file=sys.stderr)
    return 1


def stop_server(folder: Path) -> None:
    file = folder / "server.pid"
    if not file.exists():
        return
    pid = int(file.read_text(encoding="utf-8"))
    file.unlink()
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    for _ in range(40):  # until its port is free
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz").read()
            time.sleep(0.5)
        except OSError:
            return


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as"]:
        sys.exit(shim(sys.argv[2], sys.argv[3:]))
    sys.path.insert(0, str(ROOT))
    main()
