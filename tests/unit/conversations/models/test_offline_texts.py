"""What the offline model says about results."""

from random import Random

import pytest

from conversations.models.offline_texts import answer_from_results, plain_answer, result_sentence, thing_of


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"city":"Oslo","temperature":4,"windy":true}', "The weather for Oslo: temperature 4, windy yes."),
        ('{"temperature":4}', "The weather: temperature 4."),
        ('{"days":[1],"more":{"a":1}}', "The weather: there is days, more."),
        ("{}", "The weather request returned nothing further."),
        ("[]", "The weather request returned nothing further."),
        ('[{"city":"Oslo","t":4}]', "The weather list holds 1; the first for Oslo: t 4."),
        ("[7]", "The weather list holds 1; the first: 7."),
        ("12.5", "The weather result is 12.5."),
        ("It rains", "The weather result says: It rains."),
        ("Error: no such city", "The weather request did not succeed (no such city)."),
    ],
)
def test_a_sentence_for_each_kind_of_result(content: str, sentence: str) -> None:
    assert result_sentence("weather_api__get_weather", content) == sentence


@pytest.mark.parametrize(
    ("name", "thing"),
    [
        ("ns__get_stock_price", "stock_price"),
        ("search_books", "books"),
        ("ping", "ping"),
        ("get_", "get_"),
        ("ns__", "ns__"),
        ("", ""),
    ],
)
def test_a_tool_is_named_by_what_it_is_about(name: str, thing: str) -> None:
    assert thing_of(name) == thing


def test_a_final_answer_mentions_the_last_results_once_each() -> None:
    results = [("get_weather", f'{{"city":"{city}","t":1}}') for city in ("Lima", "Oslo", "Oslo", "Seoul")]

    text = answer_from_results(results, Random(1))

    assert "Lima" not in text
    assert text.count("Oslo") == text.count("Seoul") == 1


def test_a_long_result_is_cut() -> None:
    assert len(result_sentence("f", "word " * 500)) < 250


def test_a_plain_answer_takes_up_the_question() -> None:
    assert '"How do I learn Go"' in plain_answer("How do I\n learn Go?", Random(1))
