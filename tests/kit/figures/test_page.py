"""The page in a real browser; what its file holds, without one."""

import io
import re
import shutil
import types

import numpy as np
import pytest
from PIL import Image

from keras_transformer.kit.figures.page import attention_page
from keras_transformer.kit.figures.pictures import head_colour, head_picture
from keras_transformer.kit.figures.views import attention_views, word_labels

SOURCE = ["▁Law", "▁</script><b>${data}", "▁·", "</s>"]
TARGET = ["▁Recht", "</s>"]
TEXT = "Law </script><b>${data} ·"
PITCH = 20  # pixels from subword to subword


def maps():
    """Two layers of two heads; the page opens with the sharpest cross-attention of layer 2."""
    encoder = np.full((2, 2, 4, 4), 0.25, "f4")
    encoder[0, 0] = np.eye(4)
    encoder[0, 1] = [[0.7, 0.2, 0.1, 0], [0.25] * 4, [0, 0, 0.994, 0.006], [0, 0, 0, 1]]
    decoder = np.full((2, 2, 2, 2), [[1, 0], [0.5, 0.5]], "f4")
    memory = np.full((2, 2, 2, 4), [0.125, 0.125, 0.25, 0.5], "f4")
    memory[1, 1] = [[0, 1, 0, 0], [0, 0, 1, 0]]
    return {"encoder": encoder, "decoder": decoder, "memory": memory}


def small_maps():
    return {name: np.full((1, 1, 2, 2), 0.5, "f4") for name in ("encoder", "decoder", "memory")}


def page_of(source, target, maps, *texts):
    found = types.SimpleNamespace(source_pieces=source, target_pieces=target, **maps)
    return attention_page(attention_views(found), *texts)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "attention.html"
    path.write_text(page_of(SOURCE, TARGET, maps(), TEXT, "Recht"), encoding="utf-8")
    return path


def test_heading_of_text_with_control_characters():
    page = page_of(["▁a\x1bb", "</s>"], ["▁c\0", "</s>"], small_maps(), "a\x1bb \ud83d", "c\0")
    assert "a\ufffdb \ufffd" in page and "c\ufffd" in page
    assert not re.search("[\0\x1b]", page) and page.encode("utf-8")


@pytest.fixture(scope="module")
def browser():
    """Chromium; absent browsers skip what needs one."""
    reason = "install: pip install playwright"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("install: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, timeout=120_000)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, page_file):
    """Opens the page, and fails the test if it complains or asks for anything."""
    complaints, contexts = [], []

    def opened(file=page_file, **settings):
        contexts.append(
            browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        )
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("#links[viewBox]", state="attached")
        complaints.remove(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def lines(page):
    return page.locator("#links line").count()


def word(side, number):
    return f"#{side} li:nth-child({number}) button"


def tile(layer, head):
    return f"#overview [data-layer='{layer - 1}'][data-head='{head - 1}']"


def encoder_heads(page, *heads):
    """Shows heads of layer 1 of the encoder, and puts the pointer aside."""
    page.click("text=Encoder self-attention")
    for n, head in enumerate(heads):
        page.click(tile(1, head), modifiers=["Shift"] if n else [])
    page.hover("h1")


def numbers(page, side):
    """{subword: the weight beside it} of those that are tied to the one pointed at."""
    tied = page.locator(f"#{side} [data-weight]").all()
    return {each.inner_text(): each.get_attribute("data-weight") for each in tied}


def test_size_and_no_addresses():
    pieces = [f"▁w{i}" for i in range(59)] + ["</s>"]
    rng = np.random.default_rng(1)
    noise = {name: rng.random((6, 8, 60, 60), "f4") for name in ("encoder", "decoder", "memory")}
    page = page_of(pieces, pieces, noise, "a", "b")
    assert len(page.encode("utf-8")) < 1_000_000
    assert not re.search(r"https?:|//\w+\.\w|@import|src=|<link", page)


@pytest.mark.slow  # a browser
def test_every_weight_is_there(open_page):
    page = open_page()
    assert page.inner_text("h1") == TEXT
    assert lines(page) == 2, "head 2 of layer 2 is the sharpest, and opens"
    assert page.inner_text("#caption") == "Cross-attention, layer 2 of 2, head 2 of 2."
    assert page.locator("#heads :checked").get_attribute("value") == "1"
    assert page.locator("#overview [aria-pressed=true]").all_inner_texts() == ["2.2"]
    page.hover(word("queries", 2))
    assert numbers(page, "keys") == {"·": "1.00"}
    encoder_heads(page, 1, 2)
    page.hover(word("queries", 1))
    # The mean of heads [1, 0, 0, 0] and [0.7, 0.2, 0.1, 0].
    wanted = {"Law": "0.85", "</script><b>${data}": "0.10", "·": "0.05"}
    assert (numbers(page, "keys"), numbers(page, "queries")) == (wanted, {})
    assert page.inner_text("#reading").startswith(
        "Colours stand for heads, numbers are their means."
    )
    page.click("text=Cross-attention")
    page.hover(word("keys", 4))
    wanted = {"Recht": "0.50", "</s>": "0.50"}
    assert (numbers(page, "keys"), numbers(page, "queries")) == ({}, wanted)
    page.hover("h1")
    assert numbers(page, "queries") == {}


@pytest.mark.slow  # a browser
def test_heat_map_is_a_table_of_the_weights(open_page):
    page = open_page()
    encoder_heads(page, 2)
    rows = page.locator("#heat tr").all()
    cells = [row.locator("th, td").all_inner_texts() for row in rows]
    labels = word_labels(SOURCE)
    assert cells[0] == ["", *labels]
    weights = [[".70", ".20", ".10", ""], [".25"] * 4, ["", "", ".99", ""], ["", "", "", "1"]]
    assert cells[1:] == [[label, *row] for label, row in zip(labels, weights, strict=True)]
    rows[3].locator("td").nth(3).hover()
    assert numbers(page, "keys") == {"·": "0.99"}, "a row is isolated with its subword"
    colours = "(cells) => cells.map((cell) => getComputedStyle(cell).backgroundColor)"
    found = page.locator("#heat tbody tr:first-child td").evaluate_all(colours)
    brightness = [sum(float(part) for part in re.findall(r"[\d.]+", each)[:3]) for each in found]
    assert brightness == sorted(set(brightness)), "more weight is darker"


@pytest.mark.slow  # a browser
def test_lines_are_drawn_in_the_colour_of_their_head(open_page):
    page = open_page()
    encoder_heads(page, 2)
    assert lines(page) == 3 + 4 + 1 + 1  # 0.006 is too faint
    colour = page.eval_on_selector("line", "(line) => getComputedStyle(line).stroke")
    found = [float(part) for part in re.findall(r"[\d.]+", colour)[:3]]
    np.testing.assert_allclose(found, 255 * np.array(head_colour(2)), atol=1)
    found = [
        [float(line.get_attribute(name)) for name in ("y1", "y2", "opacity")]
        for line in page.locator("line").all()
    ]
    wanted = [(0, 0, 0.7), (0, 1, 0.2), (0, 2, 0.1), *((1, k, 0.25) for k in range(4))]
    wanted += [(2, 2, 0.994), (3, 3, 1)]
    np.testing.assert_allclose(found, np.add(wanted, [0.5, 0.5, 0]), atol=1 / 510)
    drawn, first, last = (
        page.locator(name).bounding_box() for name in ("#links", word("keys", 1), word("keys", 4))
    )
    assert (drawn["y"], drawn["height"]) == pytest.approx((first["y"], 4 * PITCH), abs=0.01)
    assert drawn["x"] + drawn["width"] == pytest.approx(first["x"], abs=0.01)
    assert last["y"] == pytest.approx(first["y"] + 3 * PITCH, abs=0.01)


@pytest.mark.slow  # a browser
def test_hover_isolates_a_subword(open_page):
    page = open_page()
    encoder_heads(page, 1, 2)
    assert lines(page) == 4 + 9
    page.hover(word("queries", 2))
    assert lines(page) == 1 + 4
    page.hover(word("keys", 1))
    assert lines(page) == 1 + 2
    page.hover("h1")
    assert lines(page) == 4 + 9
    page.click(word("queries", 2))
    page.hover(word("keys", 1))
    assert lines(page) == 1 + 4, "a click keeps it"
    assert page.get_attribute(word("queries", 2), "aria-pressed") == "true"
    page.click(word("queries", 2))
    page.hover("h1")
    assert lines(page) == 4 + 9, "a second one lets go"
    page.click(word("queries", 2))
    page.keyboard.press("Escape")
    assert lines(page) == 4 + 9


@pytest.mark.slow  # a browser
def test_a_click_chooses_a_head(open_page):
    page = open_page()
    encoder_heads(page, 1, 2)
    assert page.inner_text("#caption") == "Encoder self-attention, layer 1 of 2, all 2 heads."
    page.click("#heads label:nth-of-type(2)")
    assert lines(page) == 9
    page.click("#heads >> text=all")
    assert lines(page) == 4 + 9
    page.click(tile(2, 2))
    assert lines(page) == 16
    assert page.inner_text("#caption").endswith("layer 2 of 2, head 2 of 2.")
    assert page.is_checked("#layers label:nth-of-type(2) input")
    page.click(tile(1, 1), modifiers=["Shift"])
    assert lines(page) == 4, "another layer is not added"
    page.click(tile(1, 2), modifiers=["Shift"])
    assert lines(page) == 4 + 9
    page.click(tile(1, 1), modifiers=["Shift"])
    assert lines(page) == 9
    page.click(tile(1, 2), modifiers=["Shift"])
    assert lines(page) == 9, "the last one stays"


@pytest.mark.slow  # a browser
def test_keyboard(open_page):
    page = open_page()
    encoder_heads(page, 1, 2)
    page.focus(word("queries", 1))
    page.keyboard.press("ArrowDown")
    assert lines(page) == 1 + 4
    page.keyboard.press("ArrowRight")
    assert lines(page) == 1 + 2, "the second subword on the right"
    page.keyboard.press("Enter")
    assert lines(page) == 1 + 2
    assert page.get_attribute(word("keys", 2), "aria-pressed") == "true"
    page.keyboard.press("Escape")
    page.focus("#heads :checked")
    assert lines(page) == 4 + 9
    page.keyboard.press("ArrowLeft")
    assert lines(page) == 9, "one key to the next head"
    page.keyboard.press("ArrowLeft")
    assert lines(page) == 4
    page.focus("#layers :checked")
    page.keyboard.press("ArrowRight")
    assert lines(page) == 16


@pytest.mark.slow  # a browser
def test_all_heads_in_the_order_of_a_measure(open_page):
    page = open_page()
    encoder_heads(page, 1, 2)
    tiles = page.locator("#overview button")
    assert tiles.all_inner_texts() == ["1.1", "1.2", "2.1", "2.2"]
    page.select_option("#order", "entropy")
    # Rows of entropy 0.80, log 4, 0.04 and 0; those of the last layer are uniform.
    assert tiles.all_inner_texts() == ["2.1: 1.39", "2.2: 1.39", "1.2: 0.56", "1.1: 0.00"]
    assert "log n for n equal ones" in page.inner_text("#meaning")
    page.click("#overview button:nth-child(4)")
    assert lines(page) == 4
    page.select_option("#order", "")
    assert tiles.all_inner_texts() == ["1.1", "1.2", "2.1", "2.2"]


@pytest.mark.slow  # a browser
def test_phone_in_the_dark(open_page):
    page = open_page(viewport={"width": 360, "height": 640}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in re.findall(r"\d+", background)) < 50
    page.emulate_media(color_scheme="light")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert min(int(part) for part in re.findall(r"\d+", background)) > 200


@pytest.mark.slow  # a browser
def test_heat_map_of_a_long_sentence_on_a_phone(open_page, tmp_path):
    pieces = [f"▁w{i}" for i in range(59)] + ["</s>"]
    equal = {name: np.full((1, 1, 60, 60), 1 / 60) for name in ("encoder", "decoder", "memory")}
    file = tmp_path / "long.html"
    file.write_text(page_of(pieces, pieces, equal, "a", "b"), encoding="utf-8")
    page = open_page(file=file, viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator(".scroll").evaluate("(box) => box.scrollTo(box.scrollWidth, box.scrollHeight)")
    page.locator(".scroll").scroll_into_view_if_needed()
    box = page.locator(".scroll").bounding_box()
    parts = ("tbody tr:last-child td:last-child", "tbody tr:last-child th", "thead th:last-child")
    corner, row, column = (page.locator(f"#heat {part}").bounding_box() for part in parts)
    for each in (corner, row, column):  # the last square, and the headings of its row and column
        for start, size in (("x", "width"), ("y", "height")):
            assert box[start] - 1 <= each[start]
            assert each[start] + each[size] <= box[start] + box[size] + 1
    assert (row["x"], column["y"]) == (box["x"], box["y"])


@pytest.mark.slow  # a browser
@pytest.mark.parametrize(("scheme", "colour"), [("light", "#fffefb"), ("dark", "#16171a")])
def test_the_paper_of_a_picture_is_that_of_the_reader(browser, tmp_path, scheme, colour):
    found = types.SimpleNamespace(source_pieces=SOURCE, target_pieces=TARGET, **maps())
    file = tmp_path / "head.svg"
    file.write_bytes(head_picture(attention_views(found)[0], 1, [1], None, "svg"))
    with browser.new_page(color_scheme=scheme) as page:
        page.goto(file.as_uri())
        picture = page.screenshot(clip={"x": 1, "y": 1, "width": 4, "height": 4})
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).reshape(-1, 3)
    assert {"#" + bytes(pixel).hex() for pixel in pixels} == {colour}
