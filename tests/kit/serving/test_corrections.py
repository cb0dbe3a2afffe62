"""Corrections over HTTP: saved, used, removed, refused."""

import resource

import pytest

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.memory.memory import TranslationMemory
from keras_transformer.kit.serving.limits import Limits
from tests.kit.serving.running import corrections_in, served
from tests.refusals import check_message

SOURCE, TRANSLATION = "the cat sleeps.", "die Katze schlummert."
CORRECTION = {"source": SOURCE, "translation": TRANSLATION}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "corrections.tmx"


def correcting(translator, corrections, scenario, cors_origin=None, **limits):
    """Runs `scenario(ask)`; `ask` returns the status and the content of an answer."""
    if corrections is not None:
        translator.memories = (corrections.memory,)

    async def asking(client, service):
        async def ask(method, path, body, **headers):
            answer = await client.request(method, path, json=body, headers=headers)
            return answer.status, await answer.json()

        return await scenario(ask)

    settings = {"cors_origin": cors_origin, "corrections": corrections}
    return served(translator, asking, Limits(**limits), **settings)


def test_a_correction_is_saved_and_found_and_removed(translator, path):
    corrections = corrections_in(path)

    async def scenario(ask):
        status, answer = await ask("POST", "/corrections", CORRECTION)
        assert (status, answer["source"], answer["translation"]) == (200, SOURCE, TRANSLATION)
        assert corrections_in(path).memory.find(SOURCE) == TRANSLATION
        status, answer = await ask(
            "POST", "/translate", {"texts": ["the cat sits.", "a"], "matches": True}
        )
        assert status == 200 and answer["matches"] == [[], []]
        request = {"text": "the cats sleeps.", "matches": True}
        ((match,),) = (await ask("POST", "/translate", request))[1]["matches"]
        assert match == {
            "source": SOURCE,
            "translation": TRANSLATION,
            "similarity": 0.937,
            "difference": [
                {"kind": "equal", "text": "the "},
                {"kind": "delete", "text": "cat "},
                {"kind": "insert", "text": "cats "},
                {"kind": "equal", "text": "sleeps."},
            ],
            "is_correction": True,
        }
        assert await ask("DELETE", "/corrections", {"source": SOURCE}) == (200, {"removed": 1})
        assert await ask("DELETE", "/corrections", {"source": SOURCE}) == (200, {"removed": 0})
        assert (await ask("POST", "/translate", request))[1]["matches"] == [[]]

    correcting(translator, corrections, scenario)


def test_a_memory_has_matches_that_are_no_corrections(translator, path):
    corrections = corrections_in(path)

    async def scenario(ask):
        known = {SOURCE: "im Speicher", "the dog sleeps.": "der Hund"}
        translator.memories = (corrections.memory, TranslationMemory(known))
        await ask("POST", "/corrections", CORRECTION)
        _, answer = await ask("POST", "/translate", {"text": SOURCE, "matches": True})
        found = [(one["translation"], one["is_correction"]) for one in answer["matches"][0]]
        assert found == [(TRANSLATION, True), ("der Hund", False)]
        assert "matches" not in (await ask("POST", "/translate", {"text": SOURCE}))[1]
        _, card = await ask("GET", "/model", None)
        assert card["has_memory"] and card["has_corrections"]

    correcting(translator, corrections, scenario)


def test_the_file_is_read_again_before_a_translation(translator, path):
    corrections = corrections_in(path)

    async def scenario(ask):
        corrections_in(path).add(SOURCE, TRANSLATION, Direction("en", "de"))  # another process
        assert corrections.memory.find(SOURCE) is None
        await ask("POST", "/translate", {"text": "a"})
        assert corrections.memory.find(SOURCE) == TRANSLATION

    correcting(translator, corrections, scenario)


def test_a_server_without_corrections(translator):
    async def scenario(ask):
        for method in ("POST", "DELETE"):
            status, answer = await ask(method, "/corrections", CORRECTION)
            assert status == 404 and "corrections" in answer["error"]

    correcting(translator, None, scenario)


@pytest.mark.parametrize(
    ("body", "about", "received"),
    [
        ({"source": " ", "translation": "a"}, "source", "' '"),
        ({"source": "a", "translation": "\n"}, "translation", ""),
        ({"source": "a"}, "translation", ""),
        ({**CORRECTION, "target": "de"}, "only have the fields", "target"),
        ({**CORRECTION, "to": "fr"}, "languages", "'fr'"),
        ({**CORRECTION, "source_language": "cs"}, "languages", "'cs'"),
    ],
)
def test_refused_corrections(translator, path, body, about, received):
    corrections = corrections_in(path)

    async def scenario(ask):
        before = path.read_bytes()
        status, answer = await ask("POST", "/corrections", body)
        assert status == 400
        check_message(answer["error"], about, received)
        assert path.read_bytes() == before

    correcting(translator, corrections, scenario)


def test_several_directions(translator, path):
    directions = [Direction("en", "de"), Direction("cs", "de"), Direction("en", "cs")]
    corrections = corrections_in(path, *directions)

    async def scenario(ask):
        status, _ = await ask("POST", "/corrections", {**CORRECTION, "to": "de"})
        assert status == 400, "from English or from Czech"
        body = {**CORRECTION, "to": "de", "source_language": "en-GB"}
        assert (await ask("POST", "/corrections", body))[0] == 200
        assert (await ask("POST", "/corrections", {**CORRECTION, "to": "cs"}))[0] == 200
        assert [each.direction for each in corrections.all()] == [directions[0], directions[2]]
        body = {"source": SOURCE, "to": "cs"}
        assert (await ask("DELETE", "/corrections", body))[1] == {"removed": 1}
        assert [each.direction for each in corrections.all()] == [directions[0]]
        body = {"source": SOURCE, "to": "en-de"}  # as for a model that reads both languages
        assert (await ask("DELETE", "/corrections", body))[1] == {"removed": 1}

    correcting(translator, corrections, scenario)


def test_limits(translator, path):
    corrections = corrections_in(path)

    async def scenario(ask):
        status, answer = await ask(
            "POST", "/corrections", {"source": "a" * 20, "translation": "b" * 21}
        )
        assert status == 413 and "41 characters" in answer["error"]
        for number in range(3):
            body = {"source": f"a {number}", "translation": "b"}
            status, answer = await ask("POST", "/corrections", body)
            assert status == (200 if number < 2 else 413)
        assert "There are 2 corrections" in answer["error"] and "max_corrections" in answer["error"]
        assert len(corrections) == 2

    correcting(translator, corrections, scenario, max_characters=40, max_corrections=2)


def test_a_full_disk_is_told_and_the_server_goes_on(translator, path):
    corrections = corrections_in(path)

    async def scenario(ask):
        await ask("POST", "/corrections", CORRECTION)
        before = path.read_bytes()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), hard))
        try:
            answers = [
                await ask("POST", "/corrections", {"source": "a", "translation": "b"}),
                await ask("POST", "/corrections", CORRECTION | {"translation": "x" * 90}),
            ]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        wanted = (507, {"error": "nothing was saved: File too large"})
        assert answers == [wanted, wanted] and path.read_bytes() == before
        assert corrections.memory.find(SOURCE) == TRANSLATION
        assert (await ask("POST", "/translate", {"text": "a"}))[0] == 200
        status, _ = await ask("POST", "/corrections", {"source": "a", "translation": "b"})
        assert status == 200 and len(corrections_in(path)) == 2

    correcting(translator, corrections, scenario)


def test_a_damaged_file_is_told_without_its_path(translator, path):
    corrections = corrections_in(path)

    async def scenario(ask):
        path.write_text("<tmx><body>")
        assert (await ask("POST", "/translate", {"text": "a"}))[0] == 200
        for method, body in (("POST", CORRECTION), ("DELETE", {"source": "a"})):
            status, answer = await ask(method, "/corrections", body)
            assert status == 507 and "well-formed" in answer["error"]
            assert path.name not in answer["error"]
        assert path.read_text() == "<tmx><body>"

    correcting(translator, corrections, scenario)


@pytest.mark.parametrize(
    ("cors_origin", "status"), [(None, 403), ("*", 403), ("https://example.org", 200)]
)
def test_other_pages_must_be_named_to_correct(translator, path, cors_origin, status):
    corrections = corrections_in(path)

    async def scenario(ask):
        origin = {"Origin": "https://example.org"}
        assert (await ask("POST", "/corrections", CORRECTION, **origin))[0] == status
        assert (await ask("DELETE", "/corrections", {"source": SOURCE}, **origin))[0] == status
        translated, _ = await ask("POST", "/translate", {"text": "a"}, **origin)
        assert translated == (200 if cors_origin else 403)

    correcting(translator, corrections, scenario, cors_origin)
