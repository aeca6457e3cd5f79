"""How alike vectors are."""

import pytest

from engines.enrichments.encoders import LexicalEncoder
from engines.enrichments.similarity import similarities, unit


def test_dense_and_sparse_vectors_have_the_same_cosine() -> None:
    sparse = [unit({"a": 3.0, "b": 4.0}), unit({"b": 1.0}), unit({"c": 2.0})]
    dense = [unit([3.0, 4.0, 0.0]), unit([0.0, 1.0, 0.0]), unit([0.0, 0.0, 2.0])]
    expected = [{0: 1.0, 1: 0.8}, {0: 0.8, 1: 1.0}, {2: 1.0}]
    assert similarities(sparse, sparse) == expected
    assert similarities(dense, dense) == expected


def test_opposite_and_empty_vectors_are_not_alike() -> None:
    assert similarities([unit([1.0, 0.0])], [unit([-1.0, 0.0]), unit([0.0, 0.0])]) == [{}]
    assert similarities([unit({})], [unit({"a": 1.0})]) == [{}]


async def test_d77_words_that_few_texts_have_say_more() -> None:
    texts = ["get the weather of a city", "get the weather forecast", "get an order", "get a refund"]
    vectors = await LexicalEncoder().encode(texts)
    (weather, *_) = similarities(vectors, vectors)
    assert weather[0] == pytest.approx(1.0)
    assert weather[1] > 0.3 > weather[2] > 0
