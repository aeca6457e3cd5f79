"""Ranking by words."""

import pytest

from engines.search.bm25 import WordIndex

TEXTS = ["the cat sat", "cat cat cat", "a dog and a cat in a very long house with many rooms", "dog", ""]


def test_texts_with_none_of_the_words_are_out_and_the_best_comes_first() -> None:
    index = WordIndex(TEXTS)
    assert [place for place, _ in index.best("dog", 9)] == [3, 2]
    assert [place for place, _ in index.best("cats", 9)] == [1, 0, 2]
    assert index.best("bird", 9) == []
    assert len(index.best("cat dog", 2)) == 2


def test_a_rare_word_says_more_than_a_common_one() -> None:
    index = WordIndex(["common rare", "common", "common", "common other"])
    scores = dict(index.best("rare", 9)) | {3: dict(index.best("common", 9))[3]}
    assert scores[0] > 3 * scores[3]


def test_the_score_is_that_of_the_formula() -> None:
    ((place, score),) = WordIndex(["one two", "three"]).best("one", 9)
    rarity, length = 0.6931, 1 - 0.75 + 0.75 * 2 / 1.5
    assert place == 0
    assert score == pytest.approx(rarity * 2.5 / (1 + 1.5 * length), rel=1e-3)


def test_an_index_of_nothing_finds_nothing() -> None:
    assert WordIndex([]).best("x", 3) == []
    assert WordIndex(["", "the"]).best("the", 3) == []
