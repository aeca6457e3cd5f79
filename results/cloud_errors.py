"""Reads what went wrong out of obstore's exceptions, without the credentials and signed addresses in their text."""

import re
from typing import Final

from results.errors import AlreadyStored, NotFound, ResultsError, StoreRefused, StoreUnavailable

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9_.]{1,80})</Code>")
_HOST = re.compile(r"https?://(?:[^/@\s]*@)?([A-Za-z0-9.:\[\]-]+)")
_SYSTEM_MESSAGE = re.compile(r'(?:message|error): "([^"\\]{1,200})"')
_TLS = re.compile(r"(?:InvalidCertificate|AlertReceived)\(\s*([A-Za-z]{1,60})")
_TIMEOUT = re.compile(r"kind: Timeout|TimedOut")

_RETRIED_CONFLICTS: Final = {"ConditionalRequestConflict", "OperationAborted"}
_BUCKET_MISSING: Final = {"NoSuchBucket", "ContainerNotFound"}
_TROUBLE_STATUSES: Final = {408, 409, 425, 429, 500, 502, 503, 504, 509, 520, 522, 524, 529}
_FULL: Final = 507
_WAYS_OUT: Final = {
    400: "check the region, the endpoint and the credentials in the environment",
    401: "set the store's credentials in the environment",
    403: "check the credentials, their rights on this bucket, their expiry and this machine's clock",
    404: "create the bucket, or correct the results URL and the endpoint",
    _FULL: "free some space in the store, or choose another results URL",
}
_NO_ANSWER: Final = "check the endpoint in the environment and the network, then try again"
_TLS_WAY_OUT: Final = "check the endpoint in the environment; SSL_CERT_FILE names a file of authorities to trust"
_TRY_AGAIN: Final = "the store is in trouble; try again later"


def store_error(error: Exception, verb: str, where: str) -> ResultsError:
    """Return the error of this floor that says what obstore's exception says; `where` names the object."""
    text = str(error)
    status = _first(_STATUS, text)
    code = _first(_CODE, text) or ""
    # object_store appends the service's whole answer, which may quote the access key: only picked words leave here.
    cause = _cause(error, text, status, code)
    what = f"cannot {verb} {where}: {cause}"
    if status is None:
        return _without_answer(error, text, what)
    number = int(status)
    if code in _BUCKET_MISSING:
        return StoreRefused(f"{what}; {_WAYS_OUT[404]}")
    if isinstance(error, FileNotFoundError) and verb in {"read", "delete"}:
        return NotFound(f"{where}: no such object; check the results URL and the run id")
    if number in {409, 412} and code not in _RETRIED_CONFLICTS:
        return AlreadyStored(f"{where}: the object is there already; it was left as it is")
    if number in _TROUBLE_STATUSES:
        return StoreUnavailable(f"{what}; {_TRY_AGAIN}")
    return StoreRefused(f"{what}; {_WAYS_OUT.get(number, _WAYS_OUT[400])}")


def _without_answer(error: Exception, text: str, what: str) -> ResultsError:
    if isinstance(error, FileNotFoundError):
        return NotFound(f"{what}; check the results URL and the run id")
    if type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
        return StoreRefused(f"{what}; {_WAYS_OUT[403]}")
    if _TLS.search(text):
        return StoreRefused(f"{what}; {_TLS_WAY_OUT}")
    return StoreUnavailable(f"{what}; {_NO_ANSWER}")


def _cause(error: Exception, text: str, status: str | None, code: str) -> str:
    host = _first(_HOST, text)
    at_host = f" from {host}" if host else ""
    if status is not None:
        return f"HTTP {status}{f' {code}' if code else ''}{at_host}"
    if tls := _first(_TLS, text):
        return f"TLS failed ({tls.removesuffix('Context')}){at_host}"
    if _TIMEOUT.search(text):
        return f"no answer in time{at_host}"
    return f"{_first(_SYSTEM_MESSAGE, text) or type(error).__name__}{at_host}"


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
