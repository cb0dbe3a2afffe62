"""The exported page in a real browser, with the real files of ONNX Runtime."""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from keras_transformer.kit.exchange.web.page import RUNTIME, RUNTIME_ADDRESS

playwright = pytest.importorskip("playwright.sync_api", reason="install: pip install '.[test]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
INSTALLED = (
    Path(__file__).resolve().parents[4] / ".venv" / "web" / "node_modules" / "onnxruntime-web"
)
RUNTIME_FOLDER = Path(os.environ.get("ONNXRUNTIME_WEB") or INSTALLED / "dist")
pytestmark = [
    pytest.mark.slow,  # a browser
    pytest.mark.skipif(CHROMIUM is None, reason="install: apt-get install chromium"),
    pytest.mark.skipif(not RUNTIME_FOLDER.is_dir(), reason="install: make .venv/.web"),
]
expect = playwright.expect
expect.set_options(timeout=60_000)
TEXT = "the cat sat on the mat. A dog ran!\n\n  big red cats and small dogs \nTHE HOUSE"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(folder, handler=Handler):
    """Serves files with an ordinary web server; yields its address."""
    handler = functools.partial(handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "http://127.0.0.1:{1}/".format(*server.server_address)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM, timeout=120_000)


@pytest.fixture(scope="module")
def exported(export_of):
    return export_of("page", RUNTIME_FOLDER)


@pytest.fixture(scope="module")
def address(exported):
    with served(exported) as address:
        yield address


@pytest.fixture
def new_page(browser):
    """Opens pages, each as on a first visit; checks at the end that no script failed."""
    faults = []
    with contextlib.ExitStack() as stack:

        def opened(address, script="", **settings):
            context = stack.enter_context(browser.new_context(**settings))
            context.add_init_script(script)
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(address)
            return page

        yield opened
    assert faults == []


@pytest.fixture
def page(new_page, address):
    return new_page(address)


def translate(page, text):
    page.locator("#text").fill(text)
    page.get_by_role("button", name="Translate").click()
    expect(page.locator("#translation")).to_have_attribute("aria-busy", "false")
    return page.locator("#translation .sentence")


def written(page):
    return "\n".join(page.locator("#translation p").all_text_contents())


@pytest.fixture(scope="module")
def translator(untrained):
    import keras_transformer as kt

    return kt.load(untrained, "average:2", engine="tensorflow", beam_size=3)


def shown_choices(translator):
    """Returns the distinct translations of TEXT's first sentence, best first."""
    answers = translator.translate(["the cat sat on the mat."])[0]
    texts = [each.text for each in answers]
    return [each for place, each in enumerate(answers) if each.text not in texts[:place]]


def test_the_runtime_is_the_one_at_the_public_address():
    package = json.loads((RUNTIME_FOLDER.parent / "package.json").read_text(encoding="utf-8"))
    assert f"@{package['version']}/" in RUNTIME_ADDRESS, "of another version than the page's"
    from keras_transformer.kit.exchange.web.page import runtime_files

    described = runtime_files(None).described
    for name, file in runtime_files(RUNTIME_FOLDER).described.items():
        assert file == {**described[name], "url": name}, RUNTIME[name].name


def test_translations_are_those_of_python(page, translator):
    translate(page, TEXT)
    assert written(page) == translator.translate_document(TEXT)
    best = shown_choices(translator)
    page.locator(".sentence").first.click()
    rows = page.locator("#choices .entry")
    expect(rows).to_have_count(len(best))
    for row, expected in zip(rows.all(), best, strict=True):
        text, score, log_prob = row.locator("> span").all_text_contents()
        assert text == expected.text
        assert float(score.replace("−", "-")) == pytest.approx(expected.score, abs=2e-3)
        assert float(log_prob.replace("−", "-")) == pytest.approx(expected.log_prob, abs=2e-2)
    expect(page.locator("#attention")).to_be_hidden()


def test_the_rest_is_written_anew(page, translator):
    translate(page, "the cat sat").first.click()
    box = page.get_by_role("textbox", name="Translation").first
    expect(box).to_be_visible()
    page.evaluate("document.querySelector('[role=textbox]').textContent = 'die katze'")
    box.press("End")
    box.press("Enter")
    expect(page.get_by_role("textbox", name="Translation").first).to_have_text(
        translator.translate(["the cat sat"], target_prefixes=["die katze"])[0][0].text
    )


def test_what_is_typed_is_translated(page, translator):
    page.locator("#text").press_sequentially("a dog")
    expected = translator.translate_document("a dog")
    expect(page.locator("#translation")).to_have_text(expected)
    page.get_by_label("while I type").uncheck()
    page.locator("#text").press_sequentially("s")
    expect(page.locator("#changed")).to_be_visible()
    page.wait_for_timeout(1000)
    expect(page.locator("#translation")).to_have_text(expected)


def test_it_works_without_a_network_after_the_first_visit(new_page, exported):
    with served(exported) as address:
        page = new_page(address)
        first = translate(page, "the cat sat").first.text_content()
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.reload()
    page.locator("#clear").click()
    assert translate(page, "the cat sat").first.text_content() == first
    names = page.evaluate("caches.keys()")
    version = json.loads((exported / "model.json").read_text(encoding="utf-8"))["version"]
    assert names == [f"{address} {version}"]


@pytest.mark.parametrize("is_intact", [True, False])
def test_the_runtime_comes_from_a_public_address(browser, export_of, is_intact):
    def answer(route):
        content = (RUNTIME_FOLDER / route.request.url.removeprefix(RUNTIME_ADDRESS)).read_bytes()
        headers = {"Access-Control-Allow-Origin": "*"}
        route.fulfill(body=content if is_intact else content + b" ", headers=headers)

    with served(export_of("public", None)) as address, browser.new_context() as context:
        context.route(f"{RUNTIME_ADDRESS}*", answer)
        page = context.new_page()
        page.goto(address)
        if is_intact:
            expect(translate(page, "the cat")).to_have_count(1)
        else:
            alert = page.locator("#form > .error")
            expect(alert).to_contain_text(re.compile(r"^runtime.\w+ must be the file of \d+ bytes"))


def damaged(exported, folder, name, content):
    shutil.copytree(exported, folder)
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("decoder.onnx", 1000, "one of 1000 bytes"),
        ("encoder.onnx", None, "status 404"),
        ("runtime.wasm", 5, "one of 5 bytes"),
        ("model.json", 40, "part of it"),
        ("model.json", None, "status 404"),
        ("beam_search.js", None, "a file of this page is missing"),
    ],
)
def test_files_that_are_missing_or_cut_short(new_page, exported, tmp_path, name, size, said):
    content = None if size is None else (exported / name).read_bytes()[:size]
    with served(damaged(exported, tmp_path / "page", name, content)) as address:
        page = new_page(address)
        alert = page.locator("#form > .error")
        expect(alert).to_contain_text(said)
        assert name.removesuffix(".js") in alert.text_content() or name.endswith(".js")
        page.locator("#text").fill("the cat")
        page.get_by_role("button", name="Translate").click()
        expect(alert).to_contain_text(said)


def test_a_browser_without_webassembly(new_page, address):
    page = new_page(address, "delete globalThis.WebAssembly")
    expect(page.locator("#form > .error")).to_contain_text("not support WebAssembly")


def test_a_text_of_a_megabyte(page):
    page.locator("#text").fill("the cat sat. " * 80_000)
    page.get_by_role("button", name="Translate").click()
    alert = page.locator("#form > .error")
    expect(alert).to_have_text("This text has 1,040,000 characters; this page accepts 100,000")


def test_progress_while_the_model_is_loaded(new_page, exported):
    go_on = threading.Event()

    class SlowHandler(Handler):
        def copyfile(self, source, outputfile):
            if self.path.endswith("/runtime.wasm"):
                outputfile.write(source.read(5_000_000))
                assert go_on.wait(timeout=60)
            super().copyfile(source, outputfile)

    try:
        with served(exported, SlowHandler) as address:
            page = new_page(address)
            status = page.locator("#form .status")
            expect(status).to_contain_text(
                re.compile(r"Loading the model \(\d\.\d of 1\d\.\d MB\)…")
            )
            page.locator("#text").press_sequentially("a dog")
            page.wait_for_timeout(1000)
            expect(status).to_contain_text("Loading the model")
            go_on.set()
            expect(page.locator("#translation .sentence")).to_have_count(1)
            expect(status).to_have_text("")
    finally:
        go_on.set()


def test_a_page_that_is_opened_as_a_file(browser, exported):
    with browser.new_page() as page:
        page.goto((exported / "index.html").as_uri())
        expect(page.get_by_text("python -m http.server")).to_be_visible()


def test_files_of_text_alone(page):
    translate(page, "kept")
    page.locator("#file").set_input_files({"name": "a.md", "mimeType": "", "buffer": b"a"})
    expect(page.locator("#form > .error")).to_contain_text("must end in one of .txt")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(new_page, address, translator, scheme):
    page = new_page(address, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    translate(page, TEXT).first.click()
    expect(page.locator("#choices .entry")).to_have_count(len(shown_choices(translator)))
    assert page.evaluate("document.documentElement.scrollWidth") == 390
