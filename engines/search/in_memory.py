"""`search/in_memory`: a corpus written in the recipe."""

from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineParts
from engines.plain import JSONObject
from engines.search.corpus import Corpus, CorpusSearcher
from engines.search.documents import Projection
from engines.search.engine import SearchEngine
from engines.search.searching import SearchSettings


class InMemorySettings(SearchSettings):
    """`corpus` are the records, `projection` says which field is which (see `Projection`)."""

    corpus: tuple[JSONObject, ...]
    projection: dict[str, str] = Field(default_factory=dict)


def from_parts(parts: EngineParts) -> SearchEngine:
    """Build the engine; the corpus is indexed when the first session begins."""
    settings = checked(InMemorySettings, parts.settings, at=parts.at)
    if not settings.corpus:
        raise ConfigurationInvalid("there is nothing to search; give a corpus of one record or more", at=parts.at)
    projection = Projection(settings.projection)

    def load() -> Corpus:
        return Corpus.of([projection.document(raw, position=place) for place, raw in enumerate(settings.corpus)])

    return SearchEngine(parts.toolsets, CorpusSearcher(load), settings, **parts.contract(settings))
