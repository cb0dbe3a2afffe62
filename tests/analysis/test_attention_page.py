"""The page in a real browser; what its file holds, without one."""

import re
import shutil

import numpy as np
import pytest

from keras_transformer.analysis.attention_page import attention_page
from keras_transformer.analysis.attention_pictures import head_colour
from keras_transformer.analysis.attention_views import attention_views

SOURCE = ["▁Law", "▁</script><b>{{data}}", "▁·", "</s>"]
TARGET = ["▁Recht", "</s>"]
TEXT = "Law </script><b>{{data}} ·"
LAYER_1 = "#kind=encoder&layer=1&heads=1,2"
PITCH = 20  # pixels from word to word


def maps():
    """Two layers of two heads; the page opens with the sharpest cross-attention of layer 2."""
    encoder = np.full((1, 2, 2, 4, 4), 0.25, "f4")
    encoder[0, 0, 0] = np.eye(4)
    encoder[0, 0, 1] = [[0.7, 0.2, 0.1, 0], [0.25] * 4, [0, 0, 0.994, 0.006], [0, 0, 0, 1]]
    decoder = np.full((1, 2, 2, 2, 2), [[1, 0], [0.5, 0.5]], "f4")
    memory = np.full((1, 2, 2, 2, 4), [0.125, 0.125, 0.25, 0.5], "f4")
    memory[0, 1, 1] = [[0, 1, 0, 0], [0, 0, 1, 0]]
    return encoder, decoder, memory


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "attention.html"
    page = attention_page(attention_views(SOURCE, TARGET, maps()), TEXT, "Recht")
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    """Chromium; absent browsers skip what needs one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium on the PATH")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, timeout=120_000)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, page_file):
    """Opens the page, and fails the test if it complains or asks for anything."""
    complaints, contexts = [], []

    def opened(address="", **settings):
        contexts.append(
            browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        )
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(page_file.as_uri() + address)
        page.wait_for_selector("#links[data-lines]", state="attached")
        complaints.remove(page_file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def lines(page):
    """How many lines are drawn, once all that was asked for is."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return int(page.get_attribute("#links", "data-lines"))


def word(side, number):
    return f"#{side} li:nth-child({number}) button"


def readout(page):
    """What is said of the words pointed at, without the marks that keep directions apart."""
    return re.sub("[\u2068\u2069]", "", page.inner_text("#readout"))


def test_size_and_no_addresses():
    pieces = [f"▁w{i}" for i in range(59)] + ["</s>"]
    rng = np.random.default_rng(1)
    noise = [rng.random((1, 6, 8, 60, 60), "f4") for _ in range(3)]
    page = attention_page(attention_views(pieces, pieces, noise), "a", "b")
    assert len(page.encode("utf-8")) < 1_000_000
    assert not re.search(r"https?:|//\w+\.\w|@import|src=|<link", page)


def test_opens_with_one_head_of_the_last_cross_attention(open_page):
    page = open_page()
    assert lines(page) == 2, "head 2 of layer 2 is the sharpest"
    assert page.inner_text("#caption b") == "Cross-attention, layer 2 of 2, head 2 of 2."
    assert page.locator("#heads [name=head]:checked").count() == 1


def test_every_weight_is_there(open_page):
    page = open_page(LAYER_1)
    page.hover(word("queries", 1))
    lines(page)
    # The mean of heads [1, 0, 0, 0] and [0.7, 0.2, 0.1, 0].
    script = "</script><b>{{data}}"
    said = f"Law attends to Law 0.85, {script} 0.10, · 0.05 (mean of 2 heads)"
    assert readout(page) == said
    page.click("text=Cross-attention")
    page.hover(word("keys", 4))
    lines(page)
    assert readout(page).startswith("</s> is attended to by Recht 0.50, </s> 0.50")
    page.click("#overview button[data-layer='1'][data-head='1']")
    page.hover(word("queries", 2))
    lines(page)
    assert readout(page) == "</s> attends to · 1.00"
    assert page.inner_text("h1") == TEXT


def test_mean_of_heads(open_page):
    page = open_page(LAYER_1)
    assert lines(page) == 4 + 9
    page.click("text=their mean")
    page.hover("h1")
    assert lines(page) == 3 + 4 + 1 + 1, "a line where either head has one; 0.003 is too faint"
    assert "mean of all 2 heads" in page.inner_text("#caption")


def test_words_and_subwords(open_page):
    page = open_page("#units=subwords")
    assert page.locator("#keys button").all_inner_texts() == SOURCE
    page.click("#units >> text=words >> nth=0")
    lines(page)
    assert page.locator("#keys button").all_inner_texts() == [*TEXT.split(), "</s>"]


def test_lines_are_drawn_in_the_colour_of_their_head(open_page):
    page = open_page("#kind=encoder&layer=1&heads=2")
    assert lines(page) == 3 + 4 + 1 + 1  # 0.006 is too faint
    width, pixels = page.evaluate("""() => {
        const canvas = document.getElementById("links");
        const { width, height } = canvas;
        return [width, [...canvas.getContext("2d").getImageData(0, 0, width, height).data]];
    }""")
    pixels = np.reshape(pixels, [-1, width, 4])
    colour = 255 * np.array(head_colour(2))
    np.testing.assert_allclose(pixels[PITCH // 2, 2, :3], colour, atol=3)  # of the first word
    # From the third word to the third.
    np.testing.assert_allclose(pixels[2 * PITCH + PITCH // 2, 95], [*colour, 0.994 * 255], atol=3)


def test_hover_isolates_a_word(open_page):
    page = open_page(LAYER_1)
    assert lines(page) == 4 + 9
    page.hover(word("queries", 2))
    assert lines(page) == 1 + 4
    page.hover(word("keys", 1))
    assert lines(page) == 1 + 2
    page.hover("h1")
    assert lines(page) == 4 + 9
    page.click(word("queries", 2))
    page.hover("h1")
    assert lines(page) == 1 + 4, "a click keeps it"
    assert page.get_attribute(word("queries", 2), "aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert lines(page) == 4 + 9


def test_heads_are_chosen(open_page):
    page = open_page(LAYER_1)
    page.click("#heads label:nth-of-type(1)")
    page.hover("h1")
    assert lines(page) == 9
    page.hover("#heads label:nth-of-type(1)")
    assert lines(page) == 4, "the head under the pointer"
    page.click("#none")
    page.hover("h1")
    assert lines(page) == 0
    page.click("#all")
    assert lines(page) == 4 + 9
    page.click("#overview button[data-layer='1'][data-head='1']")
    assert lines(page) == 16
    assert "layer 2 of 2, head 2 of 2." in page.inner_text("#caption")
    assert page.is_checked("#layers label:nth-of-type(2) input")
    page.click("#summary tr:first-child button")
    assert lines(page) == 4


def test_heat_map_isolates_a_weight(open_page):
    page = open_page(LAYER_1)
    box = page.locator("#heat").bounding_box()
    # The last square of the last row but one; squares are as large as words are apart.
    page.mouse.move(box["x"] + box["width"] - PITCH / 2, box["y"] + box["height"] - 1.5 * PITCH)
    assert lines(page) == 0
    assert readout(page) == "· → </s>, by head: 1: 0.00, 2: 0.01"


def test_keyboard(open_page):
    page = open_page(LAYER_1)
    page.focus(word("queries", 1))
    page.keyboard.press("ArrowDown")
    assert lines(page) == 1 + 4
    page.keyboard.press("ArrowRight")
    assert lines(page) == 1 + 2, "the second word on the right"
    page.keyboard.press("Enter")
    assert lines(page) == 1 + 2
    assert page.get_attribute(word("keys", 2), "aria-pressed") == "true"
    page.keyboard.press("Escape")
    page.focus("#heads input")
    assert lines(page) == 4 + 9
    page.keyboard.press("Space")
    assert lines(page) == 9
    page.focus("#layers input:checked")
    page.keyboard.press("ArrowRight")
    assert lines(page) == 16


def test_table_is_sorted(open_page):
    page = open_page(LAYER_1)

    def column(name):
        place = page.locator("#columns button").all_inner_texts().index(name) + 1
        return [float(x) for x in page.locator(f"#summary td:nth-child({place})").all_inner_texts()]

    entropies = column("entropy")
    assert entropies[0] == 0
    assert entropies[2] == entropies[3] == 1.39
    page.click("#columns button:text('entropy')")
    assert column("entropy") == sorted(entropies, reverse=True)
    page.click("#columns button:text('entropy')")
    assert column("entropy") == sorted(entropies)


def test_rows_are_in_the_address(open_page):
    page = open_page("#kind=decoder&layer=1&heads=1&word=2&rows")
    assert lines(page) == 2
    first, second = (page.locator(word("queries", n)).bounding_box() for n in (1, 2))
    assert second["x"] - first["x"] == pytest.approx(PITCH, abs=0.01)
    above = page.locator(word("keys", 1)).bounding_box()
    assert above["y"] + above["height"] < first["y"]
    page.click("text=in columns")
    assert lines(page) == 2
    first, second = (page.locator(word("queries", n)).bounding_box() for n in (1, 2))
    assert second["y"] - first["y"] == pytest.approx(PITCH, abs=0.01)


def test_phone_in_the_dark(open_page):
    page = open_page(viewport={"width": 360, "height": 640}, color_scheme="dark")
    lines(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for cell in page.locator("#summary tr:last-child td").all():
        box = cell.bounding_box()
        assert box["height"] > 0 and box["x"] + box["width"] <= 360, "the table is there whole"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in re.findall(r"\d+", background)) < 50
    page.emulate_media(color_scheme="light")
    lines(page)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert min(int(part) for part in re.findall(r"\d+", background)) > 200
