"""Good-looking values for well-known names: what a property called `city`, `due_date` or `price` would hold."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random
from types import MappingProxyType
from uuid import UUID

CITIES = (
    "Paris",
    "Tokyo",
    "Nairobi",
    "Oslo",
    "Lisbon",
    "Toronto",
    "Seoul",
    "Lima",
    "Berlin",
    "Mumbai",
    "New York",
    "London",
)
COUNTRIES = (
    "France",
    "Japan",
    "Kenya",
    "Norway",
    "Portugal",
    "Canada",
    "South Korea",
    "Peru",
    "Germany",
    "India",
    "United States",
)
FIRST_NAMES = ("Amara", "Jonas", "Mei", "Lucía", "Priya", "Noah", "Fatima", "Olga", "Mateo", "Grace", "John", "Sarah")
LAST_NAMES = ("Okafor", "Lindqvist", "Chen", "Moreno", "Sharma", "Becker", "Haddad", "Ivanova", "Silva", "Doe", "Smith")
COMPANIES = ("Northwind Traders", "Blue Harbor Labs", "Acme Corporation", "Juniper Foods", "Orbit Mobility")
CURRENCIES = ("USD", "EUR", "JPY", "GBP", "INR", "CAD", "CHF")
SYMBOLS = ("AAPL", "MSFT", "NVDA", "TSLA", "GOOGL", "AMZN")
LANGUAGES = ("English", "French", "Spanish", "German", "Japanese", "Portuguese")
COLORS = ("blue", "green", "amber", "crimson", "ivory", "teal")
CATEGORIES = ("electronics", "travel", "groceries", "health", "finance", "education")
GENRES = ("jazz", "science fiction", "drama", "comedy", "rock", "mystery")
STATUSES = ("active", "pending", "completed", "confirmed")
CONDITIONS = ("sunny", "partly cloudy", "light rain", "overcast", "clear", "windy")
UNITS = ("celsius", "kilometers", "kilograms", "meters", "liters")
SUBJECTS = ("quarterly report", "team meeting", "project launch", "grocery list", "travel plans", "budget review")
SENTENCES = (
    "Please review the attached notes before Friday.",
    "The delivery arrived on time and in good condition.",
    "A short summary of the main points from the discussion.",
    "Remember to confirm the booking one day in advance.",
)
STREETS = ("12 Harbor Street", "48 Maple Avenue", "7 Station Road", "301 Garden Lane")
WORDS = (
    "alpha",
    "river",
    "summit",
    "harbor",
    "cedar",
    "lumen",
    "atlas",
    "meadow",
    "quartz",
    "ember",
    "orchid",
    "falcon",
)
ARTISTS = ("Nina Simone", "The Beatles", "Ravi Shankar", "Adele", "Miles Davis")
TITLES = ("The Quiet Harbor", "Northern Lights", "A Map of Rivers", "Midnight Train", "The Glass Garden")
CUISINES = ("Italian", "Thai", "Mexican", "Ethiopian", "Japanese", "Lebanese")
DIETS = ("vegetarian", "vegan", "gluten-free", "low-carb")
PRODUCTS = ("wireless headphones", "desk lamp", "running shoes", "water bottle", "notebook")
RESTAURANTS = ("Blue Harbor Grill", "Trattoria Lucía", "Lotus Garden", "The Corner Bistro")
FOODS = ("lentil soup", "margherita pizza", "green curry", "apple pie", "grilled salmon")

_EPOCH_DAY = date(2026, 1, 1)
# First match wins; the last word of a name says most, so patterns are searched in the whole name.
_TEXT_POOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"first_?name|given_name", FIRST_NAMES),
    (r"last_?name|surname|family_name", LAST_NAMES),
    (r"artist|singer|band|musician|author", ARTISTS),
    (r"restaurant", RESTAURANTS),
    (r"product|item", PRODUCTS),
    (r"company|organi[sz]ation|employer|brand|vendor", COMPANIES),
    (r"street|address", STREETS),
    (r"country|nationality|^nation$", COUNTRIES),
    (r"city|town|location|place|destination|origin|departure|arrival|region", CITIES),
    (r"currency", CURRENCIES),
    (r"symbol|ticker|stock", SYMBOLS),
    (r"lang", LANGUAGES),
    (r"colou?r", COLORS),
    (r"genre", GENRES),
    (r"weather|condition|forecast", CONDITIONS),
    (r"status|state", STATUSES),
    (r"unit", UNITS),
    (r"category|type|kind|topic|department", CATEGORIES),
    (r"cuisine", CUISINES),
    (r"diet", DIETS),
    (r"ingredient|dish|food|meal|recipe", FOODS),
    (r"subject", SUBJECTS),
    (r"movie|song|book|album|film|title|track", TITLES),
    (r"description|message|body|content|text|comment|note|summary|review|reason|details|instruction", SENTENCES),
    (r"query|question|keyword|search|term|task|event|goal", SUBJECTS),
)
_POOL_PATTERNS = tuple((re.compile(pattern), pool) for pattern, pool in _TEXT_POOLS)
_BREAKS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s.-]+")
_DIGITS = "0123456789"
_HEX = "0123456789abcdef"


def snake(name: str) -> str:
    """`dueDate` and `due-date` as `due_date`, the form in which names are looked up."""
    return _BREAKS.sub("_", name).lower()


def text_pool(name: str) -> Sequence[str] | None:
    """The known values of such a name; None when it says nothing to us."""
    for pattern, pool in _POOL_PATTERNS:
        if pattern.search(name):
            return pool
    return None


def number_range(name: str) -> tuple[float, float]:
    """Bounds a reader finds plausible for a number of this name."""
    for pattern, bounds in _NUMBER_PATTERNS:
        if pattern.search(name):
            return bounds
    return 1, 100


def names_number(name: str) -> bool:
    """Whether a value of this name is a number, as far as we know."""
    return any(pattern.search(name) for pattern, _ in _NUMBER_PATTERNS)


def format_of_name(name: str) -> str | None:
    """The JSON Schema format that a name suggests, such as `date` for `due_date`."""
    for pattern, format_name in _FORMAT_PATTERNS:
        if pattern.search(name):
            return format_name
    return None


def person(chance: Random) -> str:
    """A full name."""
    return f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}"


def words(chance: Random, count: int) -> str:
    """That many plain words."""
    return " ".join(chance.choice(WORDS) for _ in range(count))


def identifier(name: str, chance: Random) -> str:
    """`ord_48213` for `order_id`, `id_48213` for `id`."""
    stem = re.sub(r"(?:_?ids?|_?number|_?code)$", "", name)[:4].strip("_") or "id"
    return f"{stem}_{chance.randrange(10_000, 100_000)}"


def _day(chance: Random) -> date:
    return _EPOCH_DAY + timedelta(days=chance.randrange(365))


def _date(chance: Random) -> str:
    return _day(chance).isoformat()


def _birthday(chance: Random) -> str:
    return (_EPOCH_DAY - timedelta(days=chance.randrange(18 * 365, 75 * 365))).isoformat()


def _date_time(chance: Random) -> str:
    moment = datetime.combine(_day(chance), datetime.min.time(), UTC) + timedelta(minutes=15 * chance.randrange(96))
    return moment.isoformat().replace("+00:00", "Z")


def _time(chance: Random) -> str:
    return f"{chance.randrange(24):02d}:{15 * chance.randrange(4):02d}:00Z"


def _email(chance: Random) -> str:
    return f"{chance.choice(('amara', 'jonas', 'mei', 'noah', 'olga'))}.{chance.choice(WORDS)}@example.com"


def _phone(chance: Random) -> str:
    return f"+1-555-01{chance.randrange(100):02d}"


def _uuid(chance: Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))


def _ipv6(chance: Random) -> str:
    return "2001:db8::" + ":".join("".join(chance.choice(_HEX[1:]) for _ in range(4)) for _ in range(2))


_FORMATS: Mapping[str, Callable[[Random], str]] = MappingProxyType(
    {
        "date": _date,
        "birthday": _birthday,
        "date-time": _date_time,
        "time": _time,
        "duration": lambda chance: f"PT{chance.randrange(1, 60)}M",
        "email": _email,
        "idn-email": _email,
        "hostname": lambda chance: f"{chance.choice(WORDS)}.example.com",
        "idn-hostname": lambda chance: f"{chance.choice(WORDS)}.example.com",
        "ipv4": lambda chance: f"192.0.2.{chance.randrange(1, 255)}",
        "ipv6": _ipv6,
        "uri": lambda chance: f"https://example.com/{chance.choice(WORDS)}",
        "uri-reference": lambda chance: f"/{chance.choice(WORDS)}",
        "iri": lambda chance: f"https://example.com/{chance.choice(WORDS)}",
        "iri-reference": lambda chance: f"/{chance.choice(WORDS)}",
        "uri-template": lambda chance: f"https://example.com/{chance.choice(WORDS)}/{{id}}",
        "url": lambda chance: f"https://example.com/{chance.choice(WORDS)}",
        "uuid": _uuid,
        "json-pointer": lambda chance: f"/{chance.choice(WORDS)}",
        "relative-json-pointer": lambda chance: f"0/{chance.choice(WORDS)}",
        "regex": lambda chance: f"^{chance.choice(WORDS)}$",
        "byte": lambda chance: words(chance, 1).encode().hex(),
        "phone": _phone,
        "hh:mm": lambda chance: f"{chance.randrange(24):02d}:{15 * chance.randrange(4):02d}",
        "zip": lambda chance: "".join(chance.choice(_DIGITS) for _ in range(5)),
        "person": person,
    }
)
_FORMAT_PATTERNS = tuple(
    (re.compile(pattern), format_name)
    for pattern, format_name in (
        (r"e?-?mail|recipient", "email"),
        (r"phone|mobile", "phone"),
        (r"date_?time|timestamp|created_at|updated_at", "date-time"),
        (r"birth|^dob$", "birthday"),
        (r"date|deadline|day$", "date"),
        (r"(^|_)time($|_)|_at$", "hh:mm"),
        (r"url|uri|link|website|webhook", "uri"),
        (r"uuid|guid", "uuid"),
        (r"hostname|domain", "hostname"),
        (r"^ip$|ip_?addr", "ipv4"),
        (r"zip|postal", "zip"),
        (r"^(full_?|user_?|customer_?|contact_?|person_?|patient_?)?name$|owner|assignee|sender", "person"),
    )
)
_NUMBER_PATTERNS: tuple[tuple[re.Pattern[str], tuple[float, float]], ...] = tuple(
    (re.compile(pattern), bounds)
    for pattern, bounds in (
        (r"lat(itude)?$", (-60, 60)),
        (r"lon(g|gitude)?$|lng", (-170, 170)),
        (r"month", (1, 12)),
        (r"day", (1, 28)),
        (r"hour", (0, 23)),
        (r"minute|second|duration", (5, 55)),
        (r"(^|_)ages?($|_)", (18, 80)),
        (r"term|years", (1, 30)),
        (r"year", (1990, 2026)),
        (r"percent|humidity|probability", (5, 95)),
        (r"temp", (-5, 35)),
        (r"rating|score", (1, 5)),
        (r"rate", (1, 9)),
        (r"weight", (45, 110)),
        (r"height", (120, 200)),
        (r"length|limit|size|count|quantity|number|results|people|guests|page", (1, 20)),
        (r"price|cost|amount|total|salary|principal|loan|budget|fee|bill", (10, 5000)),
    )
)


def formatted(format_name: str, chance: Random) -> str | None:
    """A text of this format; None for a format that nobody here knows."""
    make = _FORMATS.get(format_name)
    return make(chance) if make else None
