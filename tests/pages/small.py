"""Scales down the documentation's commands: this file replaces `python` in their blocks.

`write_shims` writes the commands `python`, `make` and others. Each calls this file, which starts
the program with fewer steps and a smaller model, or says why it does not run it.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.pages import fork_server

SHIMS = (
    *("python", "python3", "keras-transformer", "curl", "make", "pip", "npm", "docker"),
    *("sbatch", "sudo"),
)
# Commands that are not run, and why; then the same for words among the arguments.
COMMANDS_NOT_RUN = {
    "make": "targets have tests of their own, or take their time",
    "pip": "it would change the environment",
    "npm": "make test-slow installs the same",
    "docker": "there is none",
    "sbatch": "there is no Slurm",
    "sudo": "it would change this machine",
}
WORDS_NOT_RUN = {
    "venv": "there is an environment already",
    "pip": "it would change the environment",
    "pytest": "make test runs the tests",
    "tensorboard.main": "it serves until it is stopped",
    "http.server": "it serves until it is stopped",
    "--runtime=node_modules/onnxruntime-web/dist": "the tests of the page in a browser have it",
    "--device=cuda": "there is no GPU",
    "benchmarks/gpu.py": "there is no GPU; its test runs small programs",
    "benchmarks/gpu_step.py": "there is no GPU; its tests run it on the CPU",
    "benchmarks/sport_captions.py": "it needs Multi30k; own.* are there",
    "benchmarks/training.py": "PyTorch is an extra",
    "--runner=beam": "Apache Beam has an environment of its own",
    "--pipeline_options=...": "the options are the reader's",
    "http://localhost:8501/v1/models/mine:predict": "TF Serving's endpoint",
}
# Samples of Python with one of these words are not run, and why.
SAMPLES_NOT_RUN = {
    "nvidia.cublas": "NVIDIA's libraries are not installed",
    '"KERAS_BACKEND"] = "jax"': "JAX is an extra; tests/core/model/test_jax.py uses it",
}
# Replacements (pattern, text) in the arguments of programs, and in samples.
WORDS = (
    (r"step-0000[24]000\b", "step-00000002"),
    (r"\baverage:\d+", "average:1"),
    (r"^--last=\d+", "--last=1"),
    (r"^--train_steps=\d+", "--train_steps=2"),
    (r"^--train_minutes=[\d.]+", "--train_steps=2"),
    # Checkpoints are two steps apart, so that later commands that use the one after 4,000 or 2,000
    # steps find the one after two.
    (r"^--checkpoint_steps=\d+", "--checkpoint_steps=2"),
    (r"^decoder_layers=\d+", "decoder_layers=1"),
    (r"^--lora_rank=\d+", "--lora_rank=2"),
    (r"^--rows=.*", "--rows=base"),
)
SAMPLES = (
    (r"steps_per_epoch=\d+, epochs=\d+", "steps_per_epoch=2, epochs=1"),
    (r"train_steps=\d+", "train_steps=2"),
)
TINY = ("num_layers=1", "d_model=8", "d_ff=8", "num_heads=2")
# Tracing graphs takes most of an export's time: those of other SavedModels than README's, which the
# pages serve and load, have the graphs for translating. Arguments of exports that stay as they are:
WHOLE_EXPORTS = ("--format=", "--signatures=", "--export_dir=runs/mine/export")
SIGNATURES = "--signatures=search_ids,aligned_search_ids,align_ids"
# Further arguments that make a program small; charts stay in the page's folder.
FURTHER = {
    "quickstart.py": ["--text_dir=sample_text", "--train_steps=2"],
    "decoding.py": [
        *("--shape=small", "--rounds=1"),
        *("--engines", "keras_transformer", "ctranslate2_float32"),
    ],
    "documents.py": ["--lines=20", "--rounds=1"],
    "adapt.py": ["--lora_rank=2", "--steps=1"],
    "corrections.py": ["--corrections=50", "--set=lora_rank=2", "--set=steps=1"],
    "layers.py": ["--quick", "--output=chart.svg"],
    "pipeline.py": ["--pairs=2000", "--vocab_size=400"],
}
RUN_PYTHON = "run-python"  # used as a command's name: its arguments are Python's
PORT = int(os.environ.get("COMMANDS_PORT", "8501"))  # this lane's, replaces 8501


def write_shims(folder: Path) -> None:
    """Writes the commands that replace those of the pages to a new folder."""
    folder.mkdir()
    for name in SHIMS:
        shim = folder / name
        called = "python" if name == "python3" else name  # used before there is an environment
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__)} {called} "$@"\n')
        shim.chmod(0o755)


def main(name: str, arguments: Sequence[str]) -> int:
    """Runs a scaled-down command from a page; returns its exit code."""
    if name == "make" and "quickstart" in arguments and not Path("runs/quickstart").exists():
        name, arguments = "python", ["bin/quickstart.py"]
    reason = reason_not_to_run(name, arguments)
    if reason:
        print(f"not run: {name} {' '.join(arguments)[:60]}: {reason}", file=sys.stderr)
        return 0
    arguments = [re.sub("(localhost|127.0.0.1):8501", rf"\1:{PORT}", word) for word in arguments]
    if name == RUN_PYTHON:
        return run_python(arguments)
    if name == "curl":
        curl = shutil.which("curl", path="/usr/bin:/bin:/usr/local/bin")
        return subprocess.run([curl, "--fail-with-body", "--silent", *arguments]).returncode
    if name == "keras-transformer":
        return run_python([str(Path(sys.executable).with_name(name)), *arguments])
    if arguments[0] == "-c":
        return run_python(["-c", smaller_sample(arguments[1])])
    if arguments[0] == "bin/serve.py":
        return start_server([*smaller(arguments), f"--port={PORT}"])
    return run_python(smaller(arguments))


def run_python(command: Sequence[str]) -> int:
    """Runs `python COMMAND...`, on the fork server if there is one, or in a new interpreter."""
    server = os.environ.get(fork_server.VARIABLE)
    if server:
        return fork_server.run(command, server)
    os.execv(sys.executable, [sys.executable, *command])


def reason_not_to_run(name: str, arguments: Sequence[str]) -> str | None:
    if name in COMMANDS_NOT_RUN:
        return COMMANDS_NOT_RUN[name]
    if name == "python" and arguments[0] == "-c":
        return next((why for what, why in SAMPLES_NOT_RUN.items() if what in arguments[1]), None)
    return next((WORDS_NOT_RUN[word] for word in arguments if word in WORDS_NOT_RUN), None)


def smaller_sample(text: str) -> str:
    for pattern, replacement in SAMPLES:
        text = re.sub(pattern, replacement, text)
    return text


def smaller(arguments: Sequence[str]) -> list[str]:
    """Changes `python`'s arguments to few steps, a small model and a small vocabulary."""
    vocab_size = 300 if "--dataset=treebank" in arguments else 400  # trees have few words
    found = []
    for word in arguments:
        for pattern, replacement in (*WORDS, (r"^--vocab_size=\d+", f"--vocab_size={vocab_size}")):
            word = re.sub(pattern, replacement, word)
        found.append(word)
    program = Path(found[0]).name
    if program == "train.py" and "--help" not in found:
        found.append("--tokens_per_batch=600")
        if not any(word.startswith("--sample_sentences") for word in found):
            found.append("--sample_sentences=0")  # compile no search, draw no figure
        if not any(word.startswith("--train_steps") for word in found):
            found.append("--train_steps=2")
        if any(word.startswith("--init_from") for word in found):  # that model is TINY already
            found = [word for word in found if not word.startswith("--preset")]
        else:
            found += [f"--config={setting}" for setting in TINY]
        if "--strategy=mirrored" in found:  # there may be no GPU
            found.append("--replicas=2")
    if program == "export.py" and not any(word.startswith(WHOLE_EXPORTS) for word in found):
        found.append(SIGNATURES)
    if program == "prepare_data.py" and not any("--vocab" in word for word in found):
        found.append(f"--vocab_size={vocab_size}")
    return found + FURTHER.get(program, [])


def start_server(command: Sequence[str]) -> int:
    """Replaces the previous server, if any, with a new one, and waits until it is up."""
    stop_server(Path.cwd())
    with open("server.log", "w", encoding="utf-8") as log:
        command = [sys.executable, __file__, RUN_PYTHON, *command]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    Path("server.pid").write_text(f"{process.pid} {PORT}", encoding="utf-8")
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
    """Stops a folder's server, if there is one, and waits until its port is free."""
    file = folder / "server.pid"
    if not file.exists():
        return
    pid, port = map(int, file.read_text(encoding="utf-8").split())
    file.unlink()
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    for _ in range(40):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz").read()
            time.sleep(0.5)
        except OSError:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
