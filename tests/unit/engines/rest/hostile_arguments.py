"""What a model that was talked into harm might put into an argument: about two hundred values."""

from typing import Any

_TRAVERSALS = [
    f"{up}{sep}{target}" for up in ("..", "%2e%2e", "%252e%252e", "....", "..;", ".%2e", "\uff0e\uff0e", "..%00")
    for sep in ("/", "\\", "%2f", "%5c", "%252f", "\u2215")
    for target in ("admin", "")
]  # fmt: skip
_INJECTIONS = [
    "{0.__class__}", "{0.__class__.__mro__}", "%(password)s", "%s%n%x", "${HOME}", "${ENV:-x}", "$HOME", "env:HOME",
    "file:/etc/passwd", "{{7*7}}", "{{ session_id }}", "{{ token }}", "{% import os %}", "#{7*7}", "<%= 7*7 %>",
    "'; DROP TABLE orders; --", "' OR '1'='1", '" OR ""="', "1; SELECT pg_sleep(9)", "admin'--", "\\'; EXEC xp",
    "$(id)", "`id`", "; id", "| id", "&& id", "\n id", "&", "&&", "a&admin=true", "a=b&c=d", "a#b", "a?b", "?a=b",
    "x\r\nX-Admin: 1", "x\r\n\r\nGET /admin HTTP/1.1", "x\nSet-Cookie: a=b", "\r", "\n", "\u560d\u560aX-Admin: 1",
    "\u2028X", "\x85X", "\x00", "a\x00b", "\x1b[31m", "\x7f", "\x08", "\t", " ", "  a  ", "+", "%", "%00", "%0d%0a",
    "%zz", "%u002e", "&#x2e;", "http://evil.example/", "//evil.example", "https://a@evil.example", "evil.example:80",
    "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "javascript:alert(1)", "data:text/html,x",
    "<script>alert(1)</script>", "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>", "]]>", "<![CDATA[",
    '{"$ref": "file:///etc/passwd"}', '{"__proto__": {"admin": true}}', "__proto__", "constructor", "__class__",
    "\u202eevil", "\u200b", "\ufeff", "\U0001f600", "\u0130", "\u00df", "e\u0301", "\U0001f4a9",
    "true", "null", "undefined", "NaN", "Infinity", "-0", "1e309", "0x7f", "010", "[]", "{}", "[object Object]",
    "Bearer stolen", "Basic c3RvbGVu", "a,b", "a|b", "a;b", "a:b", "a=b", "a@b", "a!b", "a$b", "a*b", "a(b)", "a~b",
    "'", '"', "`", "\\", "/", ".", "..", "...", ";", ",", "*", "-", "--", "--help", "-rf", "@file", "~root",
    "CON", "a" * 5000, "\u00e9" * 500,
]  # fmt: skip
TEXTS = [*_TRAVERSALS, *_INJECTIONS]
OTHERS: list[Any] = [
    0, -1, 2**63, 2**70, 1.5, 1e300, True, False, ["a", "b&c"], [["nested"], {"k": "&"}], {"k": "v&w=x"},
    {"__proto__": {"admin": True}}, {"a\r\nX-Admin": "1"}, {"": ""}, {"k": {"deep": ["\r\n"]}}, [""], ["..", "/"],
]  # fmt: skip
