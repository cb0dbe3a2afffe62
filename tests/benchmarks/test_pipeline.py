import json
import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture
def pipeline(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import pipeline

    return pipeline


def test_words_by_rank(pipeline, monkeypatch):
    monkeypatch.setattr(pipeline, "WORDS", 15)
    words = pipeline.lexicon(["b", "d"], ["a", "o"])
    # Numbers from 1 on, with the four syllables as digits from 1 to 4, the lowest first.
    expected = "ba da bo do baba daba boba doba bada dada boda doda babo dabo bobo"
    assert " ".join(words) == expected


def test_sentences_are_zipfian_and_of_their_lengths(pipeline, monkeypatch):
    monkeypatch.setattr(pipeline, "WORDS", 1000)
    words = np.array([str(rank) for rank in range(1000)], object)
    lengths = np.array([0.2, 3.4, 999.0, *[30.0] * 2000])
    lines = list(pipeline.sentences(words, lengths, np.random.default_rng(1)))
    assert [len(line.split()) for line in lines[:4]] == [1, 3, 240, 30]
    counts = np.bincount(np.array(" ".join(lines).split(), int), minlength=1000)
    # The share of ranks below r is log(1 + r / 2.7) / log(1 + 1000 / 2.7).
    for rank in (1, 10, 100):
        share = np.log(1 + rank / 2.7) / np.log(1 + 1000 / 2.7)
        assert counts[:rank].sum() / counts.sum() == pytest.approx(share, abs=0.01)


def test_children_s_memory_counts(pipeline):
    def resident(size):
        python = [sys.executable, "-I", "-S", "-c"]
        holding = f"x = bytearray({size}); print(1, flush=True); input()"
        program = f"import subprocess; subprocess.run({[*python, holding]!r})"
        process = subprocess.Popen(
            [*python, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert process.stdout.readline() == b"1\n"
            return pipeline.resident_bytes(process.pid)
        finally:
            process.communicate(b"\n", timeout=600)
            assert pipeline.resident_bytes(process.pid) == 0

    alone = resident(0)
    assert alone > 2e6  # two interpreters
    assert 45e6 < resident(50_000_000) - alone < 60e6


@pytest.mark.slow  # whole programs, twice
def test_program_goes_on_with_what_is_there(pipeline, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(pipeline, "WORDS", 5000)
    words = ["pipeline.py", f"--work_dir={tmp_path}", "--pairs=1500", "--vocab_size=500"]
    monkeypatch.setattr(sys, "argv", [*words, "--tokens_per_batch=3000", "--epochs=1"])
    results = []
    for _ in range(2):
        pipeline.main()
        results.append(json.loads(capfd.readouterr().out.splitlines()[-1]))
    first, second = results
    assert first["preparation"] == second["preparation"] and first["preparation"]["seconds"] > 0
    assert 100 < first["preparation"]["peak_resident_mb"] < 3000
    assert (
        first["reading"]["epochs"][0]["padding"] == second["reading"]["epochs"][0]["padding"] < 0.5
    )
    early, middle = first["reading"]["iterators"]
    assert early["batches"] == 10 and 0 < middle["megabytes"] < 1
