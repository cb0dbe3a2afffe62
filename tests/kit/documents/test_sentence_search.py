from keras_transformer.kit.documents.tree.sentence_search import SentenceSearch
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import Translation


def answer(text, **others):
    return Translation(text, None, None, tokens=2, **others)


def test_what_is_known_of_an_answer_is_passed_on():
    rows = [[answer("A", confidence=0.4, without_terms=("Z",)), answer("a")], [answer("B")]]
    counts = AnswerCounts(review_below=0.5)
    search = SentenceSearch(lambda texts, aligned: rows, keeps_answers=False, counts=counts)
    first, second = search.translate(0, ["one", "two"], [False, False])
    assert (first.text, first.confidence, first.without_terms) == ("A", 0.4, ("Z",))
    assert (second.text, second.confidence, second.without_terms) == ("B", None, ())
    assert (counts.without_terms, counts.doubtful) == (1, 1)


def test_one_search_serves_all_ranks():
    asked = []

    def find(texts, aligned):
        asked.extend(texts)
        return [[answer(text.upper()), answer(text * 2)][: len(text)] for text in texts]

    search = SentenceSearch(find, keeps_answers=True)
    for rank, expected in ((0, ["A", "BC"]), (1, ["A", "bcbc"])):
        found = search.translate(rank, ["a", "bc"], [False, False])
        assert [each.text for each in found] == expected
    assert asked == ["a", "bc"]
