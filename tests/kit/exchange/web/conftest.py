"""The page for a small model, and node, which runs the page's modules without a browser."""

import dataclasses
import json
import shutil
import subprocess

import pytest

from keras_transformer.kit.exchange.web.page import PACKAGE, RUNTIME

SCRIPTS = PACKAGE / "kit" / "exchange" / "web"


@pytest.fixture(scope="session")
def no_runtime(tmp_path_factory):
    """A folder of dummy files with the names of the runtime's files."""
    folder = tmp_path_factory.mktemp("runtime")
    for file in RUNTIME.values():
        (folder / file.name).write_text(f"{file.name}, which computes nothing")
    return folder


@pytest.fixture(scope="session")
def export_of(untrained, made_once):
    """Returns a function: export_of(name, runtime folder, weights) makes `untrained`'s page."""

    def exported(name, runtime, weights="float32"):
        def make(folder):
            from keras_transformer.kit.exchange.web.page import export_web
            from tests.restoring import restore

            trained = restore(untrained, "average:2")
            card = trained.card.with_options({"beam_size": 3})
            card = dataclasses.replace(card, weights=weights)
            page = folder / "page"
            export_web(trained.model, trained.vocabularies, page, card, runtime=runtime)

        return made_once(f"web-{name}", make) / "page"

    return exported


@pytest.fixture(scope="session")
def run_script(tmp_path_factory):
    """Returns a function: run_script(body, **values) runs a module in node, with `values` defined.

    The body imports what it needs from the page, and calls answer(value) with the value to return.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("install: apt-get install nodejs")
    folder = tmp_path_factory.mktemp("scripts")
    for script in SCRIPTS.glob("*.js"):
        shutil.copy(script, folder)
    (folder / "package.json").write_text('{"type": "module"}')

    def run(body, **values):
        names = ", ".join(values)
        head = f'import fs from "fs";\nconst {{ {names} }} = JSON.parse(fs.readFileSync(0));\n'
        head += "const answer = (value) => console.log(JSON.stringify(value));\n"
        (folder / "test.js").write_text(head + body, encoding="utf-8")
        done = subprocess.run(
            [node, str(folder / "test.js")],
            input=json.dumps(values).encode(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return run
