"""Ranking by words: BM25 over an index that is built once (Robertson and Zaragoza, 2009)."""

import heapq
import math
from collections import Counter
from collections.abc import Sequence

from engines.words import words

_SATURATION, _LENGTH_MATTERS = 1.5, 0.75


class WordIndex:
    """Which texts hold which words, and how often."""

    __slots__ = ("_average", "_lengths", "_places")

    def __init__(self, texts: Sequence[str]) -> None:
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []
        for position, text in enumerate(texts):
            counts = Counter(words(text))
            self._lengths.append(counts.total())
            for word, times in counts.items():
                self._places.setdefault(word, []).append((position, times))
        self._average = (sum(self._lengths) / len(self._lengths) if self._lengths else 0.0) or 1.0

    def best(self, query: str, most: int) -> list[tuple[int, float]]:
        """Return at most so many positions with their scores, the best first; texts with none of the words are out."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words(query)):
            places = self._places.get(word, ())
            rarity = math.log(1 + (len(self._lengths) - len(places) + 0.5) / (len(places) + 0.5))
            for position, times in places:
                length = 1 - _LENGTH_MATTERS + _LENGTH_MATTERS * self._lengths[position] / self._average
                score = rarity * times * (_SATURATION + 1) / (times + _SATURATION * length)
                scores[position] = scores.get(position, 0.0) + score
        return heapq.nsmallest(most, scores.items(), key=lambda item: (-item[1], item[0]))
