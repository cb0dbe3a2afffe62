"""Runs measuring programs from this folder, each in its own process."""

import json
import os
import subprocess
import sys
from pathlib import Path

from step_clock import Work
from timing import InputError, log, require

from keras_transformer.core.config import TransformerConfig
from keras_transformer.kit.paper.complexity import forward_flops

HERE = Path(__file__).resolve().parent


def run_worker(program: str, *words: str, python: str = sys.executable, **environment: str) -> dict:
    """Runs a program in this folder; parses its last line as JSON, and shows its log."""
    command = [python, str(HERE / program), *words]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    if done.stderr:
        log(done.stderr)
    require(
        done.returncode == 0, None, "must exit with code 0", f"exit code {done.returncode}", program
    )
    return json.loads(done.stdout.splitlines()[-1])


def has_module(python: str, module: str) -> bool:
    """Checks whether a module is installed for a Python.

    Raises:
        InputError: if that Python cannot be run.
    """
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    try:
        return subprocess.run([python, "-c", found], capture_output=True).returncode == 0
    except OSError as error:
        raise InputError("python", "must be one that runs", f"{python} ({error})") from None


def model_config(work: Work) -> TransformerConfig:
    names = ("vocab_size", "num_layers", "d_model", "d_ff", "num_heads")
    sizes = {name: getattr(work, name) for name in names}
    return TransformerConfig(**sizes)


def step_gigaflops(work: Work) -> float:
    """Counts a step's matrix product operations, in billions; backward is twice forward."""
    lengths = (work.length, work.length)
    return 3 * forward_flops(model_config(work), work.sentences, *lengths) / 1e9
