import gzip

import pytest

from keras_transformer.kit.parsing.trees import (
    Tree,
    bare_label,
    clean,
    collapse_unaries,
    parse_trees,
    read_trees,
)
from tests.refusals import refused

DOG = Tree("S", (Tree("NP", (Tree("NN", (), "dog"),)), Tree("VP", (Tree("VBZ", (), "barks"),))))


def tree(text):
    (found,) = parse_trees([text], "test")
    return found


def cleaned(text):
    return str(clean(tree(text)))


def test_a_tree_is_read_and_written():
    assert tree("(S (NP (NN dog)) (VP (VBZ barks)))") == DOG
    assert str(DOG) == "(S (NP (NN dog)) (VP (VBZ barks)))"
    assert DOG.leaves() == [("NN", "dog"), ("VBZ", "barks")]
    assert [node.label for node in DOG.walk()] == ["S", "NP", "NN", "VP", "VBZ"]
    assert DOG.fold(lambda node, below: 1 + max(below, default=0)) == 3


def test_indented_lines_with_marks():
    # Children are numbered before their parents: NN 0, NP 1, VBZ 2, VP 3, S 4.
    lines = ["S", "  NP", "    NN dog", "  VP*", "    VBZ barks"]
    assert DOG.indented({3}).splitlines() == lines
    assert tree("( (NN x))").indented() == "TOP\n  NN x"
    assert Tree("S", (Tree("NP"), Tree("X", (), "abc"))).indented() == "S\n  NP\n  X abc"


def test_trees_differ_in_label_word_and_shape():
    assert tree("(S (NP (NN dog)))") != tree("(S (NP (NN cat)))")
    assert tree("(S (NP (NN dog)))") != tree("(S (VP (NN dog)))")
    assert tree("(S (NP (A a) (B b)))") != tree("(S (NP (A a)) (B b))")
    assert len({tree("(S (A a))"), tree("(S (A a))"), tree("(S (A b))")}) == 2


@pytest.mark.parametrize("name", ["trees.ptb", "trees.ptb.gz"])
def test_files_hold_trees_of_several_lines_and_lines_of_several_trees(tmp_path, name):
    text = "( (S (NP (NN dog))\n     (VP (VBZ barks))) )\n\n(A (B b)) (C (D d)\n)\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert list(read_trees(path)) == [Tree("", (DOG,)), tree("(A (B b))"), tree("(C (D d))")]


def test_words_keep_other_spaces_and_brackets_in_words_are_spelled():
    assert tree("(X (NN a\u00a0b\u2009c))").words() == ["a\u00a0b\u2009c"]
    assert str(Tree("X", (Tree("NN", (), "f(x)"),))) == "(X (NN f-LRB-x-RRB-))"
    assert tree("(X (-LRB- -LRB-))").leaves() == [("-LRB-", "-LRB-")]


@pytest.mark.parametrize(
    ("text", "argument", "received", "place"),
    [
        ("(S (A a))\n(S\n(B b)\n", "brackets", "1 open at", "bad.ptb:2"),
        ("(S (A a)))", "tree", "')'", "bad.ptb:1"),
        ("(S (A a))\n(S (A a\0b))", None, "a NUL character", "bad.ptb:2"),
        ("\nS (A a)", "tree", "'S'", "bad.ptb:2"),
        ("(S (NN the dog))", "bracket", "(NN the dog)", "bad.ptb:1"),
        ("(S (NP))", "bracket", "(NP)", "bad.ptb:1"),
        ("(S word (NP (A a)))", "bracket", "(S word (...))", "bad.ptb:1"),
        ("(S ( (A a)))", "bracket", "( (...))", "bad.ptb:1"),
        ("( )", "bracket", "()", "bad.ptb:1"),
        ("(S\n(NP (-NONE- *)))", "tree", "(S (NP", "bad.ptb:1"),
    ],
)
def test_what_is_no_tree_is_named_with_file_and_line(tmp_path, text, argument, received, place):
    path = tmp_path / "bad.ptb"
    path.write_text(text)
    with refused(argument, received, place):
        list(read_trees(path))


def test_files_that_cannot_be_read_are_named(tmp_path):
    broken, latin = tmp_path / "broken.gz", tmp_path / "latin"
    broken.write_bytes(b"no gzip")
    latin.write_bytes(b"(S (NN caf\xe9))")
    content = gzip.compress(b"(S (NN dog))" * 9)
    cut, damaged = tmp_path / "cut.gz", tmp_path / "damaged.gz"
    cut.write_bytes(content[:-9])
    damaged.write_bytes(content[:10] + b"\xff" + content[11:])
    with refused(None, "byte 0xe9 at column 11", place=f"{latin}:1"):
        list(read_trees(latin))
    for path in (tmp_path / "missing", broken, cut, damaged):
        with refused(None, place=path):
            list(read_trees(path))


@pytest.mark.parametrize(
    ("label", "bare"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("S-TPC=3-1", "S"),
        ("ADVP|PRT", "ADVP"),
        ("-LRB-", "-LRB-"),
        ("-RRB-", "-RRB-"),
        ("-NONE-", "-NONE-"),
        ("PRP$", "PRP$"),
        ("''", "''"),
        (":", ":"),
        ("-", "-"),
        ("", ""),
    ],
)
def test_labels_lose_functions_and_indices(label, bare):
    assert bare_label(label) == bare


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        # A trace goes, and with it what held nothing else; S over S, left by it, is one.
        (
            "( (S (S-PRP (NP-SBJ (-NONE- *PRO*)) (S (VP (VB go)))) (. .)) )",
            "(S (S (VP (VB go))) (. .))",
        ),
        (
            "(S (NP (NP-1 (NN dog)) (SBAR (-NONE- 0) (S (-NONE- *T*)))) (VP (VB go)))",
            "(S (NP (NN dog)) (VP (VB go)))",
        ),
        ("(TOP (S (A a) (B b)))", "(S (A a) (B b))"),
        ("(ROOT (S1 (S (A a))))", "(S (A a))"),
        ("( (S (A a)) (. .) )", "(TOP (S (A a)) (. .))"),
        ("( (NN a) )", "(TOP (NN a))"),
        ("(NN a)", "(TOP (NN a))"),
        (
            "(S (NP-SBJ (PRP$ its) (NN|NNS x)) (-LRB- -LRB-))",
            "(S (NP (PRP$ its) (NN x)) (-LRB- -LRB-))",
        ),
        ("(NP (NP (NP (NN a))))", "(NP (NN a))"),
        ("(NN (NN a))", "(NN (NN a))"),  # a tag is no constituent
    ],
)
def test_cleaning(raw, clean):
    assert cleaned(raw) == clean
    assert cleaned(clean) == clean


def test_chains_of_unaries_collapse_down_to_the_tag():
    collapsed = collapse_unaries(tree("(S (VP (VB go) (NP (QP (CD two)))) (X (Y (A a) (B b))))"))
    assert str(collapsed) == "(S (VP (VB go) (NP+QP (CD two))) (X+Y (A a) (B b)))"


def test_a_tree_may_be_deeper_than_the_stack_of_python():
    deep = Tree("NN", (), "x")
    for _ in range(5000):
        deep = Tree("NP", (Tree("VP", (deep,)),))
    assert tree(str(deep)) == deep
    assert clean(deep) == deep and hash(deep) == hash(clean(deep))
    assert str(collapse_unaries(tree("(A " * 5000 + "(B b)" + ")" * 5000))).count("+") == 4999
