def test_parents_and_leaving_sentences(vocabularies, tmp_path):
    """A row continues the row of its parent, whatever place either has."""
    model = random_model(OPTIONS["modern"])
    graphs = exported(model, vocabularies, tmp_path / "export")
    sources = random_sources(model.config)
    memory = graphs.encode(sources)
    expected = log_probabilities_of_keras(model, sources, np.array([[[7, 8, 9]]] * len(sources)))
    # Two hypotheses for each sentence, of which the second continues the first; then half leave.
    count = len(sources)
    _, cache = graphs.step([example.BOS] * count, [0] * count, memory, graphs.empty)
    token, parent = [7, 5] * count, np.repeat(range(count), 2)
    _, cache = graphs.step(token, parent, memory, cache)
    staying = [5, 2, 0]
    memory = {name: values[staying] for name, values in memory.items()}
    found, _ = graphs.step([8, 8, 8], [2 * place for place in staying], memory, cache)
    np.testing.assert_allclose(found, expected[staying, 0, 2], atol=1e-5)


# Large weights make peaked probabilities, and hypotheses of which some end.
SEARCHED = {"positions": "learned", "max_positions": 9}


@pytest.mark.parametrize("beams", [1, 3])
def test_example_searches_as_the_library_does(beams, vocabularies, tmp_path):
    model = random_model(SEARCHED, scale=2.0)
    graphs = exported(model, vocabularies, tmp_path / "export")
    sources = random_sources(model.config)
    options = {"extra_length": 6, "max_source_length": 7}
    settings = small_models.settings_of(beams, 0.8, **options)
    best = small_models.search(model, small_models.padded(sources), settings)
    found = example.search(graphs, sources, beams, 0.8)
    lengths = best.lengths.numpy()
    for row, hypotheses in enumerate(found):
        count = 1 if len(sources[row]) == 1 else np.sum(lengths[row] > 0)
        assert len(hypotheses) == count
        for beam, (score, ids) in enumerate(hypotheses):
            assert ids == best.ids.numpy()[row, beam, : lengths[row, beam]].tolist()
            np.testing.assert_allclose(score, best.scores.numpy()[row, beam], atol=1e-4)
    ended = [ids[-1:] == [EOS_ID] for hypotheses in found for _, ids in hypotheses]
    assert any(ended) and not all(ended)
