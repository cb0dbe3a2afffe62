"""The page in a real browser: Debian's chromium without a window, driven by playwright."""

import asyncio
import contextlib
import math
import re
import shutil
import threading
import time

import pytest

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.server import answering, listening_socket
from tests.kit.documents.archives import archive, content_of
from tests.kit.serving.conftest import translation
from tests.kit.serving.running import corrections_in, held

playwright = pytest.importorskip("playwright.sync_api", reason="install: pip install '.[test]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,  # a browser
    pytest.mark.skipif(CHROMIUM is None, reason="install: apt-get install chromium"),
]
SOURCE_WORDS = ["the", "cat", "sleeps", ".", "</s>"]
TARGET_WORDS = ["die", "Ka", "·tze", "schläft", ".", "</s>"]
expect = playwright.expect
expect.set_options(timeout=60_000)


@contextlib.contextmanager
def serving(translator, terminologies=None, corrections=None):
    """Serves in a thread beside the test, as the browser's driver holds the main one."""
    loop, ready, stopped = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    listening = listening_socket("127.0.0.1", 0)
    url = "http://127.0.0.1:{1}/".format(*listening.getsockname())

    async def run():
        limits, names = Limits(max_characters=500), frozenset({"127.0.0.1"})
        service = Service(translator, limits, names, None, terminologies, corrections)
        async with answering(service, listening):
            ready.set()
            await stopped.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[run()])
    thread.start()
    try:
        assert ready.wait(timeout=60)
        yield url
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM, timeout=120_000)


@pytest.fixture(scope="module")
def tab(browser):
    """A tab for one test after the other: to open one takes longer than to load the page.

    The page keeps texts and settings by its address, which has another port in every test.
    """
    with browser.new_page() as page:
        yield page


@pytest.fixture
def open_page(browser, tab, translator):
    """Opens the page; that nothing failed or came from elsewhere is checked at the end."""

    def note_fault(error):
        faults.append(str(error))

    def note_request(request):
        requested.append(request.url)

    def opened(terminologies=None, corrections=None, **options):
        url = stack.enter_context(serving(translator, terminologies, corrections))
        page = stack.enter_context(browser.new_page(**options)) if options else tab
        page.set_default_timeout(60_000)
        for event, note in (("pageerror", note_fault), ("request", note_request)):
            page.on(event, note)
            stack.callback(page.remove_listener, event, note)
        stack.callback(page.unroute_all)
        own.append(url)
        page.goto(url)
        return page

    faults, requested, own = [], [], ["data:", "about:"]
    with contextlib.ExitStack() as stack:
        yield opened
        tab.goto("about:blank")
        tab.set_viewport_size({"width": 1280, "height": 720})
    assert faults == []
    assert all(address.startswith(tuple(own)) for address in requested)


@pytest.fixture
def page(open_page):
    return open_page()


def translate(page, text="the cat sleeps."):
    """Has a text translated; gives the sentences of the translation once they are there."""
    page.get_by_label("Text to translate").fill(text)
    page.get_by_role("button", name="Translate").click()
    expect(page.locator("#translation")).to_have_attribute("aria-busy", "false")
    return page.locator("#translation .sentence")


def translated(page, text="the cat sleeps."):
    """The same, and chooses the first sentence; gives the figure once it is drawn."""
    translate(page, text).first.click()
    return drawn(page)


def drawn(page):
    """The figure, which is what was asked for last; its section is folded until it is opened."""
    attention = page.locator("#attention")
    expect(attention).to_be_visible()
    if attention.get_attribute("open") is None:
        attention.locator("summary").click()
    figure = page.locator("#figure:not(.stale)")
    expect(figure.locator("#links[viewBox]")).to_be_visible()
    return figure


def words(figure, side):
    return figure.locator(f"#{side} button")


def choose(page, group, name):
    page.get_by_role("group", name=group).get_by_label(name, exact=True).check()


def expect_weights(figure, side, **wanted):
    """Expects the weights shown next to the subwords tied to the one pointed at."""
    tied = figure.locator(f"#{side} [data-weight]")
    expect(tied).to_have_text(list(wanted))
    for each, weight in zip(tied.all(), wanted.values(), strict=True):
        expect(each).to_have_attribute("data-weight", weight)


def test_paragraphs_and_sentences(page, translator):
    text = page.get_by_label("Text to translate")
    text.fill("the cat sleeps. It is 😀 old.\n\n  a cat \n")
    text.press("Control+Enter")
    paragraphs = page.locator("#translation p")
    expect(paragraphs).to_have_count(4)
    expect(page.locator("#translation .sentence")).to_have_count(3)
    best = "die Katze schläft."
    assert paragraphs.all_text_contents() == [f"{best} die Katze 😀 schläft.", "", f"  {best} ", ""]
    sources = [each.get_attribute("data-source") for each in page.locator(".sentence").all()]
    assert sources == ["the cat sleeps.", "It is 😀 old.", "a cat"]
    # What is given is without emoji, which its alignment places.
    assert translator.calls == [["the cat sleeps.", "It is old."], ["a cat"]], "by paragraphs"


def test_lines_of_a_wrapped_paragraph_are_translated_together(page, translator):
    line = "the photographer understands neighbourhoods,"
    translate(page, f"{line}\nwhich is warm. It is old.\n\n12:30")
    expect(page.locator("#translation .sentence")).to_have_count(2)
    assert translator.calls == [[f"{line} which is warm.", "It is old."]]
    translate(page, f"{line[:20]}\nwhich is warm.")
    expect(page.locator("#translation .sentence")).to_have_count(2)
    assert translator.calls[1:] == [[line[:20]], ["which is warm."]], "short lines are paragraphs"


def test_paragraphs_come_one_by_one(page, translator):
    begun, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def wait():
        begun.release()
        assert go_on.acquire(timeout=60)

    translator.before_call = wait
    page.get_by_label("Text to translate").fill("one\ntwo")
    region = page.get_by_role("region", name="Translation", exact=True)
    try:
        page.get_by_role("button", name="Translate").click()
        assert begun.acquire(timeout=60)
        expect(region.locator("p")).to_have_text(["…", "…"])
        expect(page.get_by_role("button", name="Copy")).to_be_disabled()
        go_on.release()
        assert begun.acquire(timeout=60)
        expect(region.locator("p")).to_have_text(["die Katze schläft.", "…"])
        expect(region).to_have_attribute("aria-busy", "true")
        expect(page.get_by_role("button", name="Copy")).to_be_enabled()
    finally:
        go_on.release(9)
    expect(region.locator("p")).to_have_text(["die Katze schläft."] * 2)
    translator.calls.clear()
    translate(page, "one\nthree\ntwo")
    assert translator.calls == [["three"]], "what is known is not asked again"


def test_n_best_with_scores(page):
    translate(page, "the cat sleeps.\na cat").nth(1).click()
    sentences = page.locator("#choices").get_by_role("group")
    expect(sentences).to_have_count(1)
    assert sentences.locator("legend").all_text_contents() == ["a cat"]
    cells = [row.locator("> span").all_text_contents() for row in sentences.locator(".entry").all()]
    assert cells == [["die Katze schläft.", "−0.500", "−1.25"], ["der Kater.", "−1.750", "−3.50"]]
    expect(page.get_by_role("radio", name="die Katze schläft.").first).to_be_checked()
    page.get_by_role("textbox", name="Translation").last.click()
    expect(page.get_by_role("radio", name="der Kater.")).to_be_checked()
    expect(page.locator("#model")).to_have_text(
        "1.2 million parameters · beam size 2 · length penalty α = 0.6"
    )
    expect(page.locator("#sentence")).to_contain_text("score is log P divided by the length")


def test_sentences_are_chosen_by_keys_alone(page):
    sentences = translate(page, "one. Two. Three.")
    sentences.first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(sentences.last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(sentences.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#choices legend")).to_have_text("Two.")
    drawn(page)


def test_checkpoint_by_name(page, translator):
    for checkpoint, text in {
        "average:5": "weights: average of 5 checkpoints",
        "runs/a/checkpoints/average-3-step-00000042": "weights: average of 3 checkpoints",
        "latest,runs/b/checkpoints/step-00000042": "weights: average of 2 checkpoints",
        "step-00000420": "weights: step-00000420",
        "mine": "weights: mine",
    }.items():
        translator.card["checkpoint"] = checkpoint
        page.reload()
        expect(page.locator("#model")).to_contain_text(text)


def test_a_hardly_trained_model_says_so(page, translator):
    note = page.locator("#hardly-trained")
    expect(page.locator("#about")).to_be_visible()  # the model's facts are there
    expect(note).to_be_hidden()
    translator.card["hardly_trained"] = "this model is hardly trained (<b>)"
    page.reload()
    expect(note).to_be_visible()
    expect(note).to_have_text("this model is hardly trained (<b>)")


PARSING = {"task": "parsing", "evaluation": {"languages": ["words", "brackets"]}}


@pytest.mark.parametrize(
    ("fields", "label", "has_example", "title"),
    [
        (
            {"data": {"languages": ["en", "de"]}},
            *("English text", True, "Translate English text and documents into German"),
        ),
        (
            {"evaluation": {"languages": ["fi", "en"]}},
            *("Finnish text", False, "Translate Finnish text and documents into English"),
        ),
        (
            {"evaluation": {"languages": ["", "txt"]}},
            *("Text to translate", False, "Translate text and documents"),
        ),
        (PARSING, "English text to parse, one sentence per line", True, "Parse English text"),
    ],
)
def test_languages_and_example(open_page, translator, fields, label, has_example, title):
    translator.card.update(fields)
    page = open_page()
    expect(page.locator("#model")).to_contain_text("parameters")
    expect(page.locator("label[for=text]")).to_have_text(label)
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page).to_have_title(title)
    example = "For example: The old woman sees a dog." if has_example else ""
    expect(page.get_by_label(label)).to_have_js_property("placeholder", example)


def test_empty_text(page, translator):
    for text in ("", " \n "):
        page.get_by_label("Text to translate").fill(text)
        page.get_by_role("button", name="Translate").click()
        expect(page.locator("#form .error")).to_contain_text("no text")
    assert translator.calls == [], "no text was sent"
    translate(page)
    expect(page.locator("#form .error")).to_be_hidden()


def test_slow_model(page, translator):
    page.get_by_label("Text to translate").fill("the cat sleeps.")
    button = page.get_by_role("button", name="Translate")
    with held(translator):
        button.click()
        # After a second it tells the time, too.
        status = re.compile(r"^Translating…( \d+ s)?$")
        expect(page.locator("#form .status")).to_have_text(status)
        expect(button).to_be_focused()
        page.keyboard.press("Enter")  # is not sent twice
    expect(page.locator("#form .status")).to_have_text("")
    expect(page.locator("#translation")).to_have_text("die Katze schläft.")
    assert translator.calls == [["the cat sleeps."]]


def test_the_newest_request_wins(page, translator):
    translated(page, "an old text.")
    text = page.get_by_label("Text to translate")
    button = page.get_by_role("button", name="Translate")
    with held(translator) as (begun, _):
        text.fill("the first.\nwhich is long.")
        button.click()
        assert begun.wait(timeout=60)
        expect(page.locator("#translation p")).to_have_text(["…", "…"])
        expect(page.locator("#attention")).to_be_hidden()
        text.fill("the second.")
        with page.expect_event("requestfailed") as given_up:
            button.click()
        assert given_up.value.url.endswith("/translate")
        expect(page.locator("#form .status")).to_contain_text("Translating…")
    sentence = page.locator("#translation .sentence")
    expect(sentence).to_have_attribute("data-source", "the second.")
    expect(page.locator("#form .error")).to_have_text("")
    expect(page.locator("#changed")).to_be_hidden()
    assert ["which is long."] not in translator.calls


def test_translation_of_another_text_is_told(page):
    translate(page, "the cat.")
    text, changed = page.get_by_label("Text to translate"), page.locator("#changed")
    expect(changed).to_be_hidden()
    text.press_sequentially(" It")
    expect(changed).to_have_text("The text has changed since it was translated.")
    for _ in " It":
        text.press("Backspace")
    expect(changed).to_be_hidden()


def test_text_outlives_a_reload_until_it_is_cleared(page):
    text = page.get_by_label("Text to translate")
    translated(page, "one\ntwo")
    page.reload()
    expect(text).to_have_value("one\ntwo")
    translated(page, "three")
    page.get_by_role("button", name="Clear").click()
    expect(text).to_have_value("")
    expect(text).to_be_focused()
    expect(page.locator("#translation")).to_be_empty()
    for place in ("#sentence", "#attention", "#choosing"):
        expect(page.locator(place)).to_be_hidden()
    page.reload()
    expect(text).to_have_value("")


def chosen_row(page):
    return page.locator(".entry:has(:checked)")


def is_said_to_be_unsaved(row):
    """Whether the row says so; the style sheet writes it."""
    content = row.evaluate("row => getComputedStyle(row, '::after').content")
    return content == '"not saved"'


def test_an_edit_stays_with_its_sentence_until_the_text_is_cleared(page):
    sentences = translate(page, "the cat sleeps.\nIt is old. the cat sleeps.")
    owning = page.locator("#owning")
    expect(owning).to_be_hidden()
    sentences.first.click()
    assert not is_said_to_be_unsaved(chosen_row(page))
    correct(page, "die Katze ruht.")
    edited = ["die Katze ruht.", "die Katze schläft.", "die Katze ruht."]
    expect(sentences).to_have_text(edited)
    expect(page.locator(".edited")).to_have_count(2)
    expect(sentences.first).to_have_attribute("title", "Yours, not saved")
    expect(owning).to_be_visible()
    assert is_said_to_be_unsaved(chosen_row(page))
    expect(chosen_row(page).locator(".number")).to_have_count(0)  # they were another text's

    translate(page, "the cat sleeps. a dog.\nIt is old. the cat sleeps.")
    edited[1:1] = ["die Katze schläft."]
    expect(sentences).to_have_text(edited)
    sentences.first.click()
    rows = page.locator("#choices .entry [role=textbox]")
    expect(rows).to_have_text(["die Katze ruht.", "die Katze schläft.", "der Kater."])
    expect(chosen_row(page).locator("[role=textbox]")).to_have_text("die Katze ruht.")
    expect(chosen_row(page).locator(".number")).to_have_count(0)

    page.reload()
    expect(sentences).to_have_text(edited)
    expect(page.locator(".edited")).to_have_count(2)
    page.get_by_role("button", name="Clear").click()
    translate(page, "the cat sleeps.")
    expect(sentences).to_have_text(["die Katze schläft."])
    page.reload()
    translate(page, "the cat sleeps.")
    expect(sentences).to_have_text(["die Katze schläft."])


def test_a_chosen_translation_stays_until_the_best_one_is_chosen_again(page):
    sentences = translate(page)
    sentences.first.click()
    page.get_by_role("radio", name="der Kater.").check()
    expect(sentences).to_have_class(["sentence edited"])
    translate(page, "the cat sleeps. It is old.")
    expect(sentences).to_have_text(["der Kater.", "die Katze schläft."])
    sentences.first.click()
    expect(page.get_by_role("radio", name="der Kater.")).to_be_checked()
    page.get_by_role("radio", name="die Katze schläft.").check()
    expect(sentences.first).to_have_text("die Katze schläft.")
    expect(page.locator(".edited")).to_have_count(0)


def test_a_sentence_without_words_can_be_chosen_again(page):
    sentences = translate(page, "the cat sleeps. It is old.")
    sentences.first.click()
    correct(page, "")
    sentences.last.click()
    expect(page.locator("#choices legend")).to_have_text("It is old.")
    sentences.first.click()
    expect(page.locator("#choices legend")).to_have_text("the cat sleeps.")
    expect(page.get_by_role("radio", name="(nothing)")).to_be_checked()


def test_another_sentence_gets_no_text_from_the_list_of_the_one_before(page, translator):
    sentences = translate(page, "one. Two.")
    sentences.first.click()
    expect(page.locator("#choices legend")).to_have_text("one.")
    with held(translator):
        sentences.last.click()
        page.locator("#choices [role=textbox]").last.evaluate("box => box.focus()")
        page.keyboard.type("x")
        expect(sentences).to_have_text(["die Katze schläft."] * 2)
    expect(page.locator("#choices legend")).to_have_text("Two.")
    page.get_by_role("radio", name="der Kater.").check()
    expect(sentences.last).to_have_text("der Kater.")


def test_details_are_folded_until_they_are_opened(open_page, translator):
    translator.engine.functions.append("constrain_ids")
    page = open_page()
    translate(page).first.click()
    expect(page.get_by_text("der Kater.")).to_be_visible()
    folded = [page.get_by_text("−1.750"), page.get_by_text("log P", exact=True)]
    folded += [page.get_by_text(text) for text in ("must contain", "to edit it", "length penalty;")]
    for each in folded:
        expect(each).to_be_hidden()
    page.get_by_text("Details", exact=True).click()
    for each in folded:
        expect(each).to_be_visible()
    page.reload()
    translate(page).first.click()
    for each in folded:
        expect(each).to_be_visible()


@pytest.mark.parametrize("is_secure", [True, False])
def test_translations_are_copied(page, is_secure):
    if is_secure:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    else:  # as where the page comes from another machine without HTTPS
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    translate(page, "one\n\n two").last.click()
    drawn(page)
    page.get_by_role("radio", name="der Kater.").check()
    page.get_by_role("textbox", name="Translation").last.press_sequentially("so ")
    copy = page.get_by_role("button", name="Copy")
    copy.click()
    expect(page.locator("#copied")).to_have_text("Copied")
    expect(copy).to_be_focused()
    text = page.get_by_label("Text to translate")
    text.fill("")
    text.press("Control+V")
    expect(text).to_have_value("die Katze schläft.\n\n so der Kater.")


def open_file(page, name, content):
    page.locator("#file").set_input_files({"name": name, "mimeType": "", "buffer": content})


@pytest.mark.parametrize(
    ("name", "content", "saved", "wanted"),
    [
        (
            *("notes.txt", "\ufeffA cat.\r\n\r\nIt sleeps. Yes."),
            *("notes.de.txt", "die Katze schläft.\r\n\r\ndie Katze schläft. die Katze schläft."),
        ),
        (
            "a.b.MD",
            "# A cat\n\n- Yes\n",
            "a.b.de.MD",
            "# die Katze schläft.\n\n- die Katze schläft.\n",
        ),
    ],
)
def test_files_are_translated_and_saved(open_page, translator, name, content, saved, wanted):
    if name.endswith("MD"):
        pytest.importorskip("markdown_it", reason="install: pip install '.[documents]'")
    translator.card["data"] = {"languages": ["en", "de"]}
    page = open_page()
    open_file(page, name, content.encode())
    expect(page.locator("#translation")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#file-name")).to_have_text(name)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == saved
    assert download.value.path().read_bytes().decode() == wanted
    page.get_by_label("English text").fill("")
    expect(page.locator("#file-name")).to_have_text("")


LETTER = archive("docx", "<w:p><w:r><w:t>A cat.</w:t></w:r></w:p>")


def test_a_document_of_an_office_is_downloaded_when_it_is_translated(page, translator):
    with page.expect_download() as download, held(translator):
        open_file(page, "letter.docx", LETTER)
        status = re.compile(r"^Translating letter\.docx…( \d+ s)?$")
        expect(page.locator("#form .status")).to_have_text(status)
    assert download.value.suggested_filename == "letter.translation.docx"
    expect(page.locator("#finished")).to_have_text("Downloaded as letter.translation.docx")
    expect(page.locator("#form .status")).to_have_text("")
    content = download.value.path().read_bytes()
    wanted = '<w:p><w:r><w:t xml:space="preserve">die Katze schläft.</w:t></w:r></w:p>'
    assert content_of("docx", content) == wanted

    translate(page, "another text.")
    with page.expect_download() as download:
        page.get_by_role("link", name="letter.translation.docx").click()
    assert download.value.suggested_filename == "letter.translation.docx"
    assert download.value.path().read_bytes() == content
    with page.expect_download():
        open_file(page, "second.docx", LETTER)
    names = ["second.translation.docx", "letter.translation.docx"]
    expect(page.locator("#finished a")).to_have_text(names)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#finished")).to_be_empty()


def test_what_stays_in_a_document_is_said(page):
    deleted = "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    body = f"<w:p>{deleted}<w:r><w:t>A cat.</w:t></w:r>{deleted}</w:p>"
    with page.expect_download():
        open_file(page, "letter.docx", archive("docx", body))
    notes = page.locator("#finished .note")
    expect(notes).to_have_text("Not translated: 2 tracked deletions.")


def test_texts_that_formulas_need_are_explained(page):
    """An answer as for a workbook; a kind that the page does not know has its name."""
    answer = {"from_memory": 0, "without_terms": 0, "doubtful": 0}
    answer |= {"translatedFileUrl": "http://a/download_file/1", "left": {"formula": 1, "new": 2}}
    page.route("**/translate_file", lambda route: route.fulfill(json=answer))
    with page.expect_download():
        open_file(page, "sums.xlsx", b"PK")
    expect(page.locator("#finished .note")).to_have_text(
        [
            "Not translated: 1 text that formulas compute or use, 2 new.",
            "If a text that a formula uses were translated, the formula could have another result.",
        ]
    )


def test_a_file_can_be_dropped_on_the_text(page):
    dropped = page.evaluate_handle(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["A cat."], "cat.txt"));
            return data;
        }"""
    )
    page.dispatch_event("#text", "drop", {"dataTransfer": dropped})
    expect(page.locator("#translation")).to_have_text("die Katze schläft.")
    expect(page.locator("#file-name")).to_have_text("cat.txt")


LONG_LETTER = archive("docx", f"<w:p><w:r><w:t>{'a' * 501}</w:t></w:r></w:p>")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.exe", b"MZ", "its name must end in .txt, .md, .html, .po, .xliff, .srt"),
        ("a.txt", b"caf\xe9", "a.txt:1 must be UTF-8. Received: byte 0xe9 at column 4"),
        ("a.docx", LONG_LETTER, "This text has 501 characters; this server accepts 500"),
        ("a.md", b"a" * 501, "This text has 501 characters; this server accepts 500"),
    ],
)
def test_files_that_are_refused(page, name, content, message):
    """The older translation, which is not the file's, leaves the page."""
    if name.endswith("md"):
        pytest.importorskip("markdown_it", reason="install: pip install '.[documents]'")
    translated(page, "older")
    open_file(page, name, content)
    expect(page.locator("#form .error")).to_contain_text(message)
    region = page.get_by_role("region", name="Translation", exact=True)
    expect(region).not_to_contain_text("Katze")
    for place in ("#sentence", "#attention", "#choosing", "#changed"):
        expect(page.locator(place)).to_be_hidden()
    expect(page.get_by_role("button", name="Download")).to_be_disabled()
    if not name.endswith("md"):
        expect(page.get_by_label("Text to translate")).to_have_value("older")
        page.get_by_role("button", name="Translate").click()
        expect(region).to_have_text("die Katze schläft.")
        expect(page.locator("#form .error")).to_be_hidden()


def test_a_page_without_a_server_takes_text_alone(open_page, translator):
    page = open_page()
    card = translator.card | {  # as in an export's folder
        "in_browser": True,
        "file_formats": {".txt": "text"},
        "archives": [],
    }
    card["signatures"] = translator.engine.functions
    page.route("**/model", lambda route: route.fulfill(json=card))
    page.reload()
    for name, content, message in (
        ("a.docx", b"PK", "The file name must end in one of .txt."),
        ("a.txt", b"\xff", "The file must be UTF-8 text. Received: a.txt"),
    ):
        translate(page, "older")
        open_file(page, name, content)
        expect(page.locator("#form .error")).to_have_text(message)
        expect(page.locator("#translation")).to_be_empty()


def test_a_page_in_another_encoding_is_downloaded_when_it_is_translated(page):
    content = '<meta charset="windows-1252"><p>Ein Café.</p>'.encode("cp1252")
    with page.expect_download() as download:
        open_file(page, "page.html", content)
    assert download.value.suggested_filename == "page.translation.html"
    wanted = '<meta charset="UTF-8"><p>die Katze schläft.</p>'
    assert download.value.path().read_bytes().decode() == wanted


def test_a_file_stops_the_translation_before_it(page, translator):
    page.get_by_label("Text to translate").fill("older")
    with held(translator) as (begun, _):
        page.get_by_role("button", name="Translate").click()
        assert begun.wait(timeout=60)
        open_file(page, "a.pdf", b"%PDF")
        expect(page.locator("#form .error")).to_contain_text("LibreOffice")
    page.wait_for_timeout(50)  # for what the older answer may do to the page
    expect(page.locator("#translation")).to_be_empty()
    expect(page.locator("#form .error")).to_contain_text("LibreOffice")


def test_markup_of_a_document_is_text_here(page):
    open_file(page, "a.html", b"<p>A <img src=x> cat.</p>")
    expect(page.locator("#translation")).to_contain_text("<img src=x>")
    expect(page.locator("#translation img")).to_have_count(0)


def test_what_is_cut_is_said(open_page, translator):
    cases = {
        "the cat.": ({}, []),
        "long": (
            {"truncated": True},
            ["This sentence is too long: only its first 255 subwords were translated."],
        ),
        "endless": (
            {"unfinished": True},
            ["The translation reached the length limit before its end."],
        ),
        "a cat.": (
            {"without_terms": ("Katze",)},
            ["Lacks the term “Katze”, which did not fit."],
        ),
    }
    translator.translate = lambda texts: [
        [translation("a", -0.5, -1.25, **cases[text][0])] for text in texts
    ]
    page = open_page()
    for text, (_, warnings) in cases.items():
        translate(page, text).first.click()
        expect(page.locator("#choices legend")).to_have_text(text)
        expect(page.locator("#choices .warning")).to_have_text(warnings)


def test_parsing_models_parse_sentences(open_page, translator):
    translator.card["task"] = "parsing"
    page = open_page()
    page.get_by_label("English text to parse").fill("The cat sleeps. The dog barks!\n\na")
    page.get_by_role("button", name="Translate").click()
    sentences = page.locator("#translation .sentence")
    expect(sentences).to_have_count(2)
    assert translator.calls == [["The cat sleeps. The dog barks!"], ["a"]]
    sentences.first.click()
    drawn(page)
    expect(page.locator("#choices .warning")).to_have_text(
        "This model parses one sentence at a time: put each on a separate line."
    )


def test_translation_without_a_score(open_page, translator):
    translator.translate = lambda texts: [[translation("", -math.inf, -math.inf)]]
    page = open_page()
    page.get_by_label("Text to translate").fill("a")
    page.get_by_role("button", name="Translate").click()
    page.locator(".sentence").focus()
    page.keyboard.press("Enter")
    cells = page.locator("#choices .entry > span")
    expect(cells).to_have_text(["a", "(nothing)", "−∞", "−∞"])  # the text stays as it is


def test_aligned_words_are_marked_on_hover(page):
    """What else the figure does is tested in tests/kit/figures/test_page.py."""
    figure = translated(page)
    expect(figure.locator("#ordering")).to_be_hidden()
    assert words(figure, "queries").all_text_contents() == TARGET_WORDS
    assert words(figure, "keys").all_text_contents() == SOURCE_WORDS
    words(figure, "keys").nth(1).hover()
    expect_weights(figure, "queries", **{"Ka": "1.00", "·tze": "1.00"})
    expect_weights(figure, "keys")
    expect(figure.locator("line")).to_have_count(2)
    words(figure, "queries").nth(3).hover()
    expect_weights(figure, "queries")
    expect_weights(figure, "keys", sleeps="1.00")
    page.get_by_role("heading", name="Translate text").hover()
    expect_weights(figure, "keys")
    choose(page, "Attention", "Decoder self-attention")
    assert words(figure, "keys").all_text_contents() == ["<s>", *TARGET_WORDS[:-1]]
    words(figure, "queries").nth(1).hover()
    expect_weights(figure, "keys", **{"<s>": "0.50", "die": "0.50"})


def test_what_was_chosen_stays(page):
    figure = translated(page)
    figure.get_by_label("Layer 1, head 2").click()
    expect(figure.locator("#caption")).to_contain_text("layer 1 of 2, head 2 of 2")
    page.get_by_role("radio", name="der Kater.").check()
    expect(drawn(page).locator("#caption")).to_contain_text("layer 1 of 2, head 2 of 2")


def test_sentence_that_is_cut(open_page, translator):
    caption = translated(open_page()).locator("#reading")
    expect(caption).to_have_text(re.compile("is its weight\\.$"))
    translator.card["max_source_length"] = 5
    caption = translated(open_page()).locator("#reading")
    expect(caption).to_contain_text("The source is truncated to 5 subwords")


def test_keyboard_alone(page, translator):
    for _ in range(3):  # the buttons above the text
        page.keyboard.press("Tab")
    expect(page.get_by_label("Text to translate")).to_be_focused()
    page.keyboard.type("the cat sleeps.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".sentence")).to_be_visible()
    for _ in range(4):  # the button below it, those above the translation, the sentence
        page.keyboard.press("Tab")
    expect(page.locator(".sentence")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#choices")).to_contain_text("der Kater.")
    page.keyboard.press("Tab")  # the first translation
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="der Kater.")).to_be_checked()
    for _ in range(3):  # the text of that translation, the headings of details and attention
        page.keyboard.press("Tab")
    assert not any(isinstance(call, tuple) for call in translator.calls), "not asked for yet"
    page.keyboard.press("Enter")
    figure = drawn(page)
    assert translator.calls[-1] == ("the cat sleeps.", "der Kater.")
    page.keyboard.press("Tab")  # the attention's kinds
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Encoder self-attention")).to_be_checked()
    page.keyboard.press("ArrowLeft")
    for _ in range(2):  # layer, head
        page.keyboard.press("Tab")
    for key in ("Tab", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(words(figure, "keys").nth(3)).to_be_focused()
    expect_weights(figure, "queries", **{".": "1.00"})


def test_what_was_translated_before_an_error_stays(page, translator):
    def fail():
        raise MemoryError("no room")

    def fail_later():
        translator.before_call = fail

    translator.before_call = fail_later
    translate(page, "one\ntwo")
    paragraphs = page.locator("#translation p")
    expect(page.locator("#form .error")).to_contain_text("MemoryError: no room")
    expect(paragraphs).to_have_text(["die Katze schläft.", "…"])
    translator.before_call = lambda: None
    page.get_by_role("button", name="Translate").click()
    expect(paragraphs).to_have_text(["die Katze schläft."] * 2)
    expect(page.locator("#form .error")).to_be_hidden()
    assert translator.calls == [["one"], ["two"], ["two"]]


def cursor_in(box, before):
    """Puts the cursor into a translation, after the text `before`."""
    box.focus()
    for _ in before:
        box.press("ArrowRight")


@pytest.mark.parametrize(
    ("before", "typed", "kept"),
    [
        ("", "", ""),
        ("die Ka", "", "die "),  # in a word, which is not kept
        ("die", "", "die"),
        ("die ", "Kuh", "die Kuh"),  # what was typed is kept in any case
    ],
)
def test_the_rest_is_written_anew(page, translator, before, typed, kept):
    translated(page)
    box = page.get_by_role("textbox", name="Translation").first
    cursor_in(box, before)
    page.keyboard.type(typed)
    page.keyboard.press("Enter")
    box = page.get_by_role("textbox", name="Translation")
    expect(box).to_have_count(1)
    expect(box).to_have_text(f"{kept.strip()} b".strip())
    assert [kept] in translator.calls
    expect(box).to_be_focused()
    page.keyboard.type("x")  # the cursor is where it was
    expect(box).to_have_text(f"{kept.strip()} b".strip().replace(kept, f"{kept}x", 1))


def test_a_beginning_that_is_refused_stays(page):
    translated(page)
    box = page.get_by_role("textbox", name="Translation").first
    box.press("End")
    page.keyboard.type(" x")
    page.keyboard.press("Enter")
    expect(page.locator("#sentence .error")).to_contain_text("Received: a long one")
    expect(box).to_have_text("die Katze schläft. x")


def test_required_phrases(open_page, translator):
    translator.engine.functions.append("constrain_ids")
    page = open_page()
    translated(page, "A cat. A dog.")
    page.get_by_text("Details", exact=True).click()
    phrases = page.get_by_label("Phrases that the translation must contain")
    phrases.fill(" eine Kuh,, ein Hund ")
    phrases.press("Enter")
    box = page.get_by_role("textbox", name="Translation", exact=True)
    expect(box).to_have_count(1)
    expect(box).to_have_text("eine Kuh+ein Hund")
    expect(page.locator("#translation")).to_have_text("eine Kuh+ein Hund die Katze schläft.")
    drawn(page)
    page.locator(".sentence").last.click()
    expect(phrases).to_have_value("")
    drawn(page)


@pytest.mark.parametrize(
    ("task", "functions"), [("parsing", ["search_ids"]), ("translation", ["greedy_ids"])]
)
def test_nothing_is_shown_that_the_model_does_not_offer(open_page, translator, task, functions):
    translator.card["task"] = task
    translator.engine.functions = functions
    page = open_page()
    page.get_by_label("to translate" if task == "translation" else "to parse").fill("a")
    page.get_by_role("button", name="Translate").click()
    page.locator(".sentence").click()
    expect(page.locator("#choices").get_by_text("die Katze schläft.")).to_be_visible()
    expect(page.locator("#attention")).to_be_hidden()
    expect(page.get_by_text("and attention")).to_be_hidden()
    expect(page.get_by_label("while I type")).to_be_hidden()
    expect(page.get_by_role("textbox")).to_have_count(1)
    expect(page.get_by_text("to edit it")).to_be_hidden()
    expect(page.get_by_text("must contain")).to_be_hidden()
    assert not any(isinstance(call, tuple) for call in translator.calls), (
        "attention is not asked for"
    )


def test_a_second_choice_while_attention_runs(page, translator):
    first, second = threading.Event(), threading.Event()
    started = threading.Semaphore(0)
    translated(page, "one. Two.")
    waits = iter([first, second])

    def wait():
        if isinstance(translator.calls[-1], tuple):  # attention is asked for
            event = next(waits)
            started.release()
            event.wait(timeout=60)

    translator.before_call = wait
    status = page.locator("#attention .status")
    computing = re.compile(r"^Computing attention…( \d+ s)?$")
    try:
        page.get_by_role("radio", name="der Kater.").check()
        assert started.acquire(timeout=60)
        page.locator(".sentence").last.click()
        expect(page.locator("legend", has_text="Two.")).to_be_visible()
        with page.expect_response(lambda answer: answer.url.endswith("/attention")):
            first.set()
        assert started.acquire(timeout=60)
        page.wait_for_timeout(50)  # for what the first answer may do to the page
        expect(status).to_have_text(computing)
        expect(page.locator("#figure")).to_have_class("stale")
    finally:
        first.set()
        second.set()
    drawn(page)
    expect(status).to_have_text("")


def test_errors_are_told_in_one_line(page, translator):
    text = page.get_by_label("Text to translate")
    alert = page.locator("#form .error")
    text.fill("x" * 501)
    text.press("Control+Enter")
    expect(alert).to_contain_text("This text has 501 characters; this server accepts 500")
    translated(page)
    expect(alert).to_be_hidden()

    def fail():
        raise MemoryError("no room")

    translator.before_call = fail
    page.get_by_role("radio", name="der Kater.").check()
    alert = page.locator("#attention .error")
    expect(alert).to_contain_text("MemoryError: no room")
    expect(page.locator("#figure")).to_be_hidden()


def test_server_that_is_gone(browser, translator):
    with browser.new_page() as page:
        page.set_default_timeout(60_000)
        with serving(translator) as url:
            page.goto(url)
        page.get_by_label("Text to translate").fill("the cat sleeps.")
        page.get_by_role("button", name="Translate").click()
        expect(page.get_by_role("alert")).to_have_text("the server does not answer")


def test_nothing_is_wider_than_the_window(page):
    translated(page, f"the cat sleeps. {'long' * 50}")
    for width in (320, 1200):
        page.set_viewport_size({"width": width, "height": 700})
        drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_right_to_left_text(page):
    text = page.get_by_label("Text to translate")
    text.fill("הַחָתוּל יָשֵׁן")
    text.press("Control+Enter")
    page.locator(".sentence").click()
    legend = page.locator("legend", has_text="הַחָתוּל")
    expect(legend).to_have_css("direction", "rtl")
    expect(text).to_have_css("direction", "rtl")
    expect(page.get_by_text("der Kater.")).to_have_css("direction", "ltr")


def test_a_menu_of_target_languages(open_page, translator):
    directions = [["en", "de"], ["en", "cs"]]
    options = {"target_languages": ["de", "cs"], "directions": directions}
    translator.card.update(task_options=options, data={"languages": ["en", "de", "cs"]})
    page = open_page()
    menu = page.get_by_label("Language of the translation")
    expect(menu.locator("option")).to_have_text(["German", "Czech"])
    sentences = translate(page, "a cat.")
    assert ("de", None) in translator.calls
    expect(page.locator("#translation")).to_have_attribute("lang", "de")
    sentences.first.click()
    page.get_by_role("radio", name="der Kater.").check()
    menu.select_option("Czech")  # translates the text again, which has no edit there
    expect(page.locator("#translation")).to_have_attribute("lang", "cs")
    expect(page.locator("#translation")).to_have_attribute("aria-busy", "false")
    assert ("cs", None) in translator.calls
    expect(sentences).to_have_text("die Katze schläft.")
    sentences.first.click()
    drawn(page)
    assert [">>cs<< a cat."] in translator.calls
    assert (">>cs<< a cat.", "die Katze schläft.") in translator.calls
    page.reload()
    expect(menu).to_have_value("cs")
    menu.select_option("German")
    expect(sentences).to_have_text("der Kater.")


def test_a_menu_for_each_language_of_a_model_that_reads_both(open_page, translator):
    languages = ["deu_Latn", "eng_Latn", "zho_Hant"]
    options = {"target_languages": languages, "source_languages": languages}
    translator.card.update(task_options=options, data={"languages": None})
    page = open_page()
    source, target = (
        page.get_by_label(f"Language of the {name}", exact=True) for name in ("text", "translation")
    )
    names = ["German", "English", "Traditional Chinese"]
    expect(source.locator("option")).to_have_text(names)
    expect(target.locator("option")).to_have_text(names)
    target.select_option("English")
    translate(page, "a cat.")
    assert ("deu_Latn-eng_Latn", None) in translator.calls
    page.get_by_role("button", name="Swap languages").click()
    expect(source).to_have_value("eng_Latn")
    expect(target).to_have_value("deu_Latn")
    expect(page.locator(".sentence")).to_have_attribute("data-source", "die Katze schläft.")
    assert ("eng_Latn-deu_Latn", None) in translator.calls
    ids = page.locator("[id]").evaluate_all("parts => parts.map((part) => part.id)")
    assert len(set(ids)) == len(ids)


def test_languages_are_swapped_where_the_model_allows(open_page, translator):
    options = {"target_languages": ["de", "cs"], "directions": [["cs", "de"], ["de", "cs"]]}
    translator.card.update(task_options=options, data={"languages": ["de", "cs"]})
    page = open_page()
    menu = page.get_by_label("Language of the translation")
    swap = page.get_by_role("button", name="Swap languages")
    translate(page, "a cat.")
    swap.click()
    expect(menu).to_have_value("cs")
    expect(page.get_by_label("Text to translate")).to_have_value("die Katze schläft.")
    expect(page.locator("#translation")).to_have_attribute("lang", "cs")
    expect(page.locator(".sentence")).to_have_attribute("data-source", "die Katze schläft.")
    assert ("cs", None) in translator.calls
    options["directions"] = [["en", "de"], ["en", "cs"]]  # none of which goes back
    page.reload()
    expect(menu).to_be_visible()
    expect(swap).to_be_hidden()


def test_buttons_share_a_line_on_a_phone(open_page, translator):
    options = {"target_languages": ["de", "en"], "directions": [["en", "de"], ["de", "en"]]}
    translator.card.update(task_options=options, data={"languages": ["en", "de"]})
    page = open_page()
    translate(page, "a cat.")
    buttons = [page.get_by_role("button", name=name) for name in ("Copy", "Download")]
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 700})
        assert len({button.bounding_box()["y"] for button in buttons}) == 1


def test_a_menu_of_terminologies(open_page, translator):
    terms = {"pets": {"dog": "Hund"}, "farm": {"dog": "Hofhund"}}
    page = open_page(terms)
    menu = page.get_by_label("Terminology")
    expect(menu.locator("option")).to_have_text(["No terms", "List: pets", "List: farm"])
    expect(menu).to_have_value("")
    menu.select_option("pets")
    translate(page, "a dog.").first.click()
    drawn(page)
    expect(page.locator("#choices")).to_contain_text("Hund")
    menu.select_option("farm")  # translates the text again
    expect(page.locator("#sentence")).to_be_hidden()
    expect(page.locator("#translation")).to_have_attribute("aria-busy", "false")
    menu.select_option("")
    expect(page.locator("#translation")).to_have_attribute("aria-busy", "false")
    calls = [call for call in translator.calls if isinstance(call, dict)]
    assert calls == [terms["pets"], terms["farm"]]


def test_what_a_document_has_from_the_memory_is_counted(page):
    open_file(page, "page.html", b"<p>known.</p><p>A cat.</p><p>known.</p>")
    status = page.locator("#form .status")
    expect(status).to_have_text("1 sentence from the translation memory")
    known = archive("docx", "<w:p><w:r><w:t>known.</w:t></w:r></w:p>")
    with page.expect_download():
        open_file(page, "letter.docx", known)
    expect(page.locator("#finished .note")).to_have_text("1 sentence from the translation memory")


def test_sentences_are_marked(page, translator):
    """From a memory, with little confidence, or without a required term."""
    legends = [page.locator(f"#{name}") for name in ("remembering", "doubting", "lacking")]
    for legend in legends:
        expect(legend).to_be_hidden()
    translator.confidences = {"a cat.": 0.37, "a dog.": 0.5, "a hen.": 0.2}
    translator.lacking = {"a hen.": ("Huhn", "Hof"), "a cow.": ("Kuh",)}
    sentences = translate(page, "known. a cat. a dog. a hen. a cow.")
    doubt = "May be wrong: good with a probability of"
    titles = [
        "From the translation memory or a correction",
        f"{doubt} 37%",
        "",
        f"Lacks the terms “Huhn”, “Hof”, which did not fit. {doubt} 20%",
        "Lacks the term “Kuh”, which did not fit",
    ]
    assert [each.get_attribute("title") for each in sentences.all()] == titles
    for mark, count in {"remembered": 1, "doubtful": 2, "lacking": 2}.items():
        expect(page.locator(f".sentence.{mark}")).to_have_count(count)
    for legend in legends:
        expect(legend).to_be_visible()


def test_doubtful_sentences_of_files_are_marked_if_the_box_is_checked(open_page, translator):
    translator.card.calibration = "of a model"
    translator.confidences = {"A cat.": 0.4}
    page = open_page()
    box, status = page.get_by_label("Mark doubtful"), page.locator("#form .status")
    open_file(page, "cat.po", b'msgid "A cat."\nmsgstr ""\n')
    expect(page.locator("#translation")).to_contain_text("msgstr")
    expect(page.locator("#translation")).not_to_contain_text("fuzzy")
    box.check()
    expect(page.locator("#translation")).to_contain_text("#, fuzzy")
    expect(status).to_have_text("1 sentence marked as doubtful")
    page.reload()
    expect(box).to_be_checked()
    with page.expect_download() as download:
        open_file(page, "cat.docx", LETTER)
    assert "commentRangeStart" in content_of("docx", download.value.path().read_bytes())
    expect(page.locator("#finished")).to_contain_text("1 sentence marked as doubtful")


@pytest.fixture
def corrections(translator, tmp_path):
    """A file of corrections, which is a memory of the translator."""
    found = corrections_in(tmp_path / "corrections.tmx")
    translator.memories = (found.memory,)
    return found


def correct(page, text):
    """Writes a correction in place of the chosen translation."""
    box = page.locator(".entry:has(:checked) [role=textbox]")
    box.fill(text)
    return box


def saved_pairs(corrections):
    return [(each.source, each.translation) for each in corrections.all()]


def test_a_correction_is_saved_used_and_removed(open_page, corrections):
    page = open_page(corrections=corrections)
    translate(page, "the cat sleeps. It is old.\nthe cat sleeps.").first.click()
    save, remove = (
        page.get_by_role("button", name=f"{each} correction") for each in ("Save", "Remove")
    )
    expect(save).to_be_visible()
    expect(remove).to_be_hidden()
    correct(page, "die Katze ruht.")
    save.click()
    expect(page.locator("#saved")).to_have_text("Saved")
    expect(remove).to_be_visible()
    wanted = ["die Katze ruht.", "die Katze schläft.", "die Katze ruht."]
    sentences = page.locator("#translation .sentence")
    assert sentences.all_text_contents() == wanted
    assert page.locator("#translation .remembered").count() == 2
    assert saved_pairs(corrections) == [("the cat sleeps.", "die Katze ruht.")]
    sentences.nth(1).click()
    expect(page.locator("#choices legend")).to_have_text("It is old.")
    expect(remove).to_be_hidden()
    expect(page.locator("#saved")).to_have_text("")

    translate(page, "the cat sleeps. It is old.\nthe cat sleeps.")
    expect(page.locator("#translation .remembered")).to_have_count(2)
    assert sentences.all_text_contents() == wanted
    sentences.last.click()
    expect(page.locator("#choices legend")).to_have_text("the cat sleeps.")
    remove.click()
    expect(page.locator("#saved")).to_have_text("Removed")
    expect(save).to_be_focused()
    assert sentences.all_text_contents() == ["die Katze schläft."] * 3
    assert page.locator("#translation .remembered").count() == 0
    assert saved_pairs(corrections) == []
    expect(remove).to_be_hidden()


def test_a_correction_has_no_score_and_an_edit_of_it_is_not_saved(open_page, corrections):
    corrections.add("the cat sleeps.", "die Katze ruht.", corrections.directions[0])
    page = open_page(corrections=corrections)
    sentences = translate(page)
    sentences.first.click()
    row = page.locator("#choices .entry")
    expect(row).to_have_count(1)
    expect(row.locator("[role=textbox]")).to_have_text("die Katze ruht.")
    expect(row.locator(".number")).to_have_count(0)
    box = correct(page, "die Katze ruht aus.")
    expect(sentences).to_have_class(["sentence edited"])
    expect(page.get_by_role("button", name="Remove correction")).to_be_visible()
    box.press("Control+Enter")
    expect(page.locator("#saved")).to_have_text("Saved")
    expect(sentences).to_have_class(["sentence remembered"])
    assert not is_said_to_be_unsaved(chosen_row(page))
    corrections.add("the cat sleeps.", "die Katze döst.", corrections.directions[0])
    page.reload()
    translate(page)
    expect(sentences).to_have_text("die Katze döst.")  # an edit that was saved stays at the server


def test_text_typed_while_a_correction_is_saved_stays(open_page, corrections):
    page = open_page(corrections=corrections)
    sentences = translate(page)
    sentences.first.click()
    box = correct(page, "die Katze ruht.")
    held = []
    page.route("**/corrections", lambda route: held.append(route))
    with page.expect_request("**/corrections"):
        page.get_by_role("button", name="Save correction").click()
    box.fill("die Katze ruht aus.")
    held[0].continue_()
    expect(page.locator("#sentence .status")).to_have_text("")
    assert saved_pairs(corrections) == [("the cat sleeps.", "die Katze ruht.")]
    expect(sentences).to_have_text("die Katze ruht aus.")
    expect(sentences).to_have_class(["sentence edited"])
    expect(page.locator("#saved")).to_have_text("")


def test_a_correction_by_keys_alone_on_a_phone(open_page, corrections):
    page = open_page(corrections=corrections, viewport={"width": 360, "height": 640})
    translate(page).first.click()
    box = correct(page, "die Katze ruht")
    box.press("End")
    box.press_sequentially(" aus.")
    box.press("Control+Enter")
    expect(page.locator("#saved")).to_have_text("Saved")
    expect(box).to_be_focused()
    assert saved_pairs(corrections) == [("the cat sleeps.", "die Katze ruht aus.")]
    box.press("x")
    expect(page.locator("#saved")).to_have_text("")  # this is not saved
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_correction_that_cannot_be_saved(open_page, corrections):
    page = open_page(corrections=corrections)
    translate(page).first.click()
    correct(page, "")
    page.get_by_role("button", name="Save correction").click()
    expect(page.locator("#sentence .error")).to_contain_text("must not be blank")
    corrections.path.write_text("<tmx>")
    correct(page, "die Katze ruht.")
    page.get_by_role("button", name="Save correction").click()
    expect(page.locator("#sentence .error")).to_contain_text("nothing was saved")
    expect(page.locator("#saved")).to_have_text("")
    expect(page.locator("#translation .remembered")).to_have_count(0)


def test_similar_sentences_are_shown_with_their_difference(open_page, translator, corrections):
    corrections.add("the dog sleeps.", "der Hund schläft.", corrections.directions[0])
    page = open_page(corrections=corrections)
    translate(page).first.click()
    row = page.locator(".entry", has_text="80%")
    expect(row.locator("[role=textbox]")).to_have_text("der Hund schläft.")
    difference = page.locator(".difference")
    expect(difference).to_have_text("the dog cat sleeps.")
    expect(difference.locator("del")).to_have_text("dog ")
    expect(difference.locator("ins")).to_have_text("cat ")
    expect(page.get_by_role("button", name="Remove correction")).to_be_hidden()
    row.locator("[role=textbox]").click()
    expect(page.locator("#translation")).to_have_text("der Hund schläft.")
    correct(page, "die Katze schlummert.")
    page.get_by_role("button", name="Save correction").click()
    expect(page.locator("#saved")).to_have_text("Saved")
    assert saved_pairs(corrections)[1] == ("the cat sleeps.", "die Katze schlummert.")


def test_a_correction_without_a_required_term_is_told(open_page, translator, corrections):
    page = open_page({"legal": {"cat": "Kater"}}, corrections)
    page.get_by_label("Terminology").select_option("legal")
    translate(page).first.click()
    page.get_by_role("textbox", name="Translation").first.fill("die Katze ruht.")
    page.get_by_role("button", name="Save correction").click()
    expect(page.locator("#saved")).to_contain_text("not used with the terms of legal")
    translator.memories = ()  # with these terms
    sentences = translate(page, "the cat sleeps. It is old.")
    expect(sentences.first).to_have_text("die Katze ruht.")
    title = "Corrected; not used with these terms, as it lacks one"
    expect(sentences.first).to_have_attribute("title", title)


def test_the_language_of_a_sentence_is_asked_if_there_are_several(open_page, translator, tmp_path):
    directions = [Direction("en", "de"), Direction("cs", "de"), Direction("de", "cs")]
    codes = [list(direction) for direction in directions]
    translator.card["task_options"] = {"target_languages": ["de", "cs"], "directions": codes}
    corrections = corrections_in(tmp_path / "corrections.tmx", *directions)
    page = open_page(corrections=corrections)
    translate(page).first.click()
    page.get_by_label("Language of the sentence").select_option("Czech")
    page.get_by_role("button", name="Save correction").click()
    expect(page.locator("#saved")).to_have_text("Saved")
    assert [correction.direction for correction in corrections.all()] == [directions[1]]


def test_nothing_is_shown_that_needs_more_than_a_model(page, translator):
    for name in ("Language of the translation", "Terminology", "Mark doubtful"):
        expect(page.get_by_label(name)).to_be_hidden()
    facts = page.locator("#model")
    expect(facts).to_contain_text("1.2\xa0million\xa0parameters")
    expect(facts).to_be_hidden()
    page.get_by_text("Model", exact=True).click()
    expect(facts).to_be_visible()
    translate(page).first.click()
    expect(page.locator("#choices legend")).to_be_visible()
    expect(page.get_by_role("button", name="Save correction")).to_be_hidden()
    expect(page.locator("#sentence")).not_to_contain_text("similar", ignore_case=True)
    page.locator(".entry [role=textbox]").first.press("Control+Enter")
    expect(page.locator("#sentence .error")).to_have_text("")
    assert not any(isinstance(call, tuple) for call in translator.calls), "no attention is computed"


def test_a_translation_is_listed_once(open_page, translator):
    rows = [("a", -0.5), ("b", -0.6), ("a", -0.7)]
    translator.translate = lambda texts: [[translation(text, s, 2 * s) for text, s in rows]]
    page = open_page()
    translate(page).first.click()
    entries = page.locator("#choices .entry")
    expect(entries).to_have_count(2)
    expect(entries.first).to_contain_text("\N{MINUS SIGN}0.500")


@pytest.mark.parametrize(
    ("text", "sentences"), [("a cat.\n" * 5000, 5000), ("a cat sleeps and " * 120_000, 0)]
)
def test_long_texts_do_not_freeze_the_page(page, text, sentences):
    started = time.monotonic()
    # As pasted; `fill` inserts a text line by line, which takes time with the square of them.
    box = page.get_by_label("Text to translate")
    box.evaluate(
        "(box, text) => { box.value = text; box.dispatchEvent(new Event('input')); }", text
    )
    page.get_by_role("button", name="Translate").click()
    if sentences:
        expect(page.locator(".sentence")).to_have_count(sentences)
    else:
        expect(page.locator("#form .error")).to_contain_text("bytes")
    assert time.monotonic() - started < 20
