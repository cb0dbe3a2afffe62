"""Measures size, memory and time of the same weights in every format that `export` writes.

    python benchmarks/exports.py --model_dir=runs/mine/model --source=test.en \
        [--runtime=node_modules/onnxruntime-web/dist] [--weights=int8] [--rounds=3]

Each format's program runs twice, each time in a new process: on the first line of the file, and on
all lines. The page, which needs --runtime and Chromium, translates the lines as paragraphs. Prints
a JSON line for each format:

    weights      float32 for SavedModel and ONNX, --weights for the others
    megabytes    size of the export; for the page, without ONNX Runtime
    memory       peak resident memory while translating the file, in MB; null for the page
    first        seconds from the start of the program, or of the page, to the first translation
    per_second   sentences per second, not counting the time of a first one

Values are medians over rounds, in which the formats take turns. Argos packages contain the
CTranslate2 directory.
"""

import argparse
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from timing import DOCS, log, run

ROOT = DOCS.parent
# Format -> the program that translates lines, and the argument that precedes the export folder.
PROGRAMS = {
    "saved_model": (ROOT / "bin" / "translate.py", "--saved_model="),
    "ctranslate2": (ROOT / "bin" / "translate.py", "--saved_model="),
    "onnx": (DOCS / "examples" / "onnx_translate.py", ""),
}
RUNTIME = "runtime.*"  # ONNX Runtime in a page's folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", type=Path, required=True)
    parser.add_argument(
        "--source", type=Path, required=True, help="file with one sentence per line"
    )
    parser.add_argument("--runtime", type=Path, help="folder of ONNX Runtime Web, for the page")
    parser.add_argument("--weights", default="int8", help="for formats other than SavedModel, ONNX")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    lines = options.source.read_text(encoding="utf-8").splitlines()

    with tempfile.TemporaryDirectory() as name:
        folder, formats = Path(name), [*PROGRAMS]
        if options.runtime is not None:
            formats.append("web")
        weights = {"saved_model": "float32", "onnx": "float32"}
        for format in formats:
            export(options, format, weights.get(format, options.weights), folder / format)
        found = {format: [] for format in formats}
        for _ in range(options.rounds):
            for format in formats:
                if format == "web":
                    figures = measured_page(folder / format, lines)
                else:
                    figures = measured_program(*PROGRAMS[format], folder / format, lines)
                found[format].append(figures)
                log(f"{format}: {found[format][-1]}")
        for format, rounds in found.items():
            figures = {
                name: None if rounds[0][name] is None else round(median(r[name] for r in rounds), 2)
                for name in rounds[0]
            }
            facts = {"format": format, "weights": weights.get(format, options.weights)}
            print(json.dumps({**facts, "megabytes": megabytes(folder / format), **figures}))


def export(options, format: str, weights: str, folder: Path) -> None:
    command = [sys.executable, ROOT / "bin" / "export.py", f"--model_dir={options.model_dir}"]
    command += [f"--format={format}", f"--weights={weights}", f"--export_dir={folder}"]
    if format == "web":
        command.append(f"--runtime={options.runtime}")
    subprocess.run(command, check=True, capture_output=True)


def megabytes(folder: Path) -> float:
    runtime = {*folder.rglob(RUNTIME)}
    files = [path for path in folder.rglob("*") if path.is_file() and path not in runtime]
    return round(sum(path.stat().st_size for path in files) / 1e6, 2)


def measured_program(
    program: Path, argument: str, folder: Path, lines: list[str]
) -> dict[str, float]:
    command = [sys.executable, str(program), f"{argument}{folder}"]
    first, _ = translate(command, lines[:1])
    seconds, memory = translate(command, lines)
    return {
        "memory": memory,
        "first": first,
        "per_second": (len(lines) - 1) / (seconds - first),
    }


def translate(command: list[str], lines: list[str]) -> tuple[float, float]:
    """Translates lines with a program; returns seconds, and peak resident memory in MB."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as source:
        source.writelines(f"{line}\n" for line in lines)
        source.seek(0)
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        written = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    assert status == 0 and len(written.splitlines()) == len(lines), command
    return seconds, usage.ru_maxrss / 1024


def measured_page(folder: Path, lines: list[str]) -> dict[str, float | None]:
    from playwright.sync_api import sync_playwright

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=folder)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        sync_playwright() as driver,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_context(bypass_csp=True).new_page()
        page.set_default_timeout(0)
        begun = time.perf_counter()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        wait_for_translation(page, lines[:1])
        first = time.perf_counter() - begun
        begun = time.perf_counter()
        wait_for_translation(page, lines)
        seconds = time.perf_counter() - begun
        browser.close()
        server.shutdown()
    return {"memory": None, "first": first, "per_second": len(lines) / seconds}


def wait_for_translation(page, lines: list[str]) -> None:
    page.locator("#text").fill("\n".join(lines))
    page.get_by_role("button", name="Translate").click()
    page.wait_for_function(
        f"document.querySelectorAll('#translation p:not(.pending)').length === {len(lines)}"
        " && document.querySelector('#translation').ariaBusy === 'false'"
    )


if __name__ == "__main__":
    run(main)
