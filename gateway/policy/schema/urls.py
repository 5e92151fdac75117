"""Addresses in a policy: endpoints of pools, origins of browsers, webhooks, databases.

Says what is wrong with one and never repeats it, for the address of a webhook or a database may be a secret. Pure;
called by pydantic, and by ``policy.oversight`` for what a reference led to.
"""

import re
from ipaddress import IPv4Address
from typing import Annotated
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import AfterValidator

from gateway.core.openai.paths import PATHS
from gateway.policy.schema.values import refuse

ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+")
DATABASES = ("sqlite", "postgresql")
_REFERENCE = re.compile(r"(?:env|file):.+")
_USUAL_PORT = re.compile(r"http://.+:80|https://.+:443")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OUTSIDE = re.compile(r"[\x00-\x20\x7f-\U0010ffff]")
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_NUMBERS = re.compile(r"[0-9.]+")
_SERVED = (*(path for path in PATHS if path.startswith("/v1/")), "/v1/models")  # others may be a base URL's own path
_PASSWORDS = frozenset({"password", "sslpassword"})


class _NoUrlError(Exception):
    """Says why no connection could be made to an address."""


def _split(value: str) -> SplitResult:
    """The parts of a URL whose host and port, where it has them, can be real. Raises ``_NoUrlError``."""
    if _CONTROL.search(value):
        raise _NoUrlError("there is a control character in it")
    try:
        url = urlsplit(value)
    except ValueError as error:
        raise _NoUrlError(f"not a URL: {str(error)[:1].lower()}{str(error)[1:]}") from error
    try:
        port = url.port
    except ValueError as error:
        raise _NoUrlError("the port is no number from 1 to 65535") from error
    if port == 0 or url.netloc.endswith(":"):
        raise _NoUrlError("port 0 is no address" if port == 0 else "there is no port behind the colon")
    if url.hostname and _NUMBERS.fullmatch(url.hostname):
        try:
            IPv4Address(url.hostname)
        except ValueError as error:
            raise _NoUrlError("the host is no IPv4 address: four numbers up to 255") from error
    return url


def _endpoint(value: str) -> str:
    if _OUTSIDE.search(value):
        refuse("an endpoint is plain ASCII without spaces", "write it as http://host:port")
    try:
        url = _split(value)
    except _NoUrlError as error:
        refuse(str(error), "write it as http://host:port, and an IPv6 address in brackets")
    if url.scheme not in ("http", "https") or not url.hostname:
        refuse("an endpoint is an http or https URL with a host", "write it as http://host:port")
    if url.username is not None or url.password is not None:
        refuse("an endpoint carries no credentials", "use the pool's api_key: env:NAME")
    if not (_HOST.fullmatch(url.hostname) or url.netloc.startswith("[")):
        refuse("a host has letters, digits, '.', '-' and '_'; nothing is filled in here", "list each endpoint")
    if url.query or url.fragment:
        refuse("an endpoint is a base URL, without query or fragment", "write it as http://host:port")
    path = url.path.rstrip("/")
    served = next((api for api in _SERVED if path.endswith(api)), "")
    if served:
        refuse("an endpoint is a base URL; the path of the request is added to it", f"leave {served} out")
    return f"{url.scheme}://{url.netloc}{path.removesuffix('/v1')}"


def _origin(value: str) -> str:
    if not ORIGIN.fullmatch(value):
        refuse(
            "an origin is what a browser sends: scheme and host in lower case, a port, and no path",
            "write it as https://app.example, or '*' for any",
        )
    if "*" in value and value != "*":
        refuse("an origin is compared as a whole, and `*` stands alone for any", "list each origin")
    if _USUAL_PORT.fullmatch(value):
        refuse("browsers leave the usual port of http and https out", f"write {value.rpartition(':')[0]}")
    if not value.isascii():
        refuse("browsers send a host in ASCII", "write its xn-- form")
    return value


def webhook_fault(value: str) -> str:
    """Why nothing could be sent to this address; empty if it can."""
    try:
        url = _split(value)
    except _NoUrlError as error:
        return str(error)
    return "" if url.scheme in ("http", "https") and url.hostname else "a webhook is an http or https URL with a host"


def database_fault(value: str) -> str:
    """Why this is no address of a database; empty if it may be one. A password may hold anything, so only the
    database's driver reads further."""
    scheme, separator, _ = value.partition("://")
    known = bool(separator) and scheme.split("+")[0] in (*DATABASES, "postgres")
    return "" if known else "a database URL begins with sqlite:/// or postgresql://"


def _database(value: str) -> str:
    if _REFERENCE.fullmatch(value):
        return value
    if fault := database_fault(value):
        refuse(fault, "or refer to it as env:NAME")
    if value.startswith("sqlite"):
        return value
    try:
        url = urlsplit(value)
        secret = url.password is not None or _PASSWORDS & {name for name, _ in parse_qsl(url.query)}
        _split(value)
    except (_NoUrlError, ValueError) as error:
        refuse(str(error) if isinstance(error, _NoUrlError) else "not a database URL", "or refer to it as env:NAME")
    if secret:
        refuse("a secret is never written into a policy", "keep the whole URL outside and refer to it as env:NAME")
    return value


def _webhook(value: str) -> str:
    if _REFERENCE.fullmatch(value):
        return value
    if fault := webhook_fault(value):
        refuse(fault, "write it as https://host/path, or as a reference env:NAME")
    url = urlsplit(value)
    if url.username is not None or url.password is not None:
        refuse("a secret is never written into a policy", "keep the whole URL outside and refer to it as env:NAME")
    return value


EndpointUrl = Annotated[str, AfterValidator(_endpoint)]
Origin = Annotated[str, AfterValidator(_origin)]
WebhookUrl = Annotated[str, AfterValidator(_webhook)]
DatabaseUrl = Annotated[str, AfterValidator(_database)]
