"""HostRule: one entry of `allowed_hosts`, the option that says to which hosts requests may be sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import httpx

from ..http._url import Origin, origin_of_url

_NO_HOST: Final = re.compile(r"[/?#@*%\\\s]|^$")  # in a rule without its scheme and without `*.`


@dataclass(frozen=True, slots=True)
class HostRule:
    """One entry of `allowed_hosts`.

    Attributes:
        host: The host, in lower case and encoded as in a URL.
        with_subdomains: Whether it allows the hosts below it, instead of the host itself.
        scheme, port: Only with these; None: with any.
    """

    host: bytes
    with_subdomains: bool
    scheme: bytes | None
    port: int | None

    @classmethod
    def of(cls, text: str) -> HostRule:
        """Return the rule for "example.org", "*.example.org", "example.org:8443" or "https://example.org".

        Raises:
            ValueError: The text is something else.
        """
        scheme, separator, authority = text.rpartition("://")
        name = authority.removeprefix("*.")
        rule = "allowed_hosts must be hosts such as 'example.org', '*.example.org' or 'https://example.org'"
        if _NO_HOST.search(name) or scheme.lower() not in ({"http", "https"} if separator else {""}):
            raise ValueError(f"{rule}, got {text!r}")
        try:
            parsed = httpx.URL(f"{scheme}://{name}")
            host, port = parsed.raw_host, parsed.port
        except (httpx.InvalidURL, ValueError) as error:
            raise ValueError(f"{rule}, got {text!r}") from error
        if not separator:
            return cls(host, name != authority, None, port)
        return cls(host, name != authority, parsed.raw_scheme, origin_of_url(parsed).port)

    def allows(self, origin: Origin) -> bool:
        """Return whether requests may be sent to this origin."""
        is_host = origin.host.endswith(b"." + self.host) if self.with_subdomains else origin.host == self.host
        return is_host and self.scheme in {None, origin.scheme} and self.port in {None, origin.port}


def host_rules(hosts: object) -> tuple[HostRule, ...] | None:
    """Return the rules of the option, sorted; None for all hosts.

    Raises:
        TypeError, ValueError: It is not a list of hosts, or empty.
    """
    if hosts is None:
        return None
    if not isinstance(hosts, Iterable) or isinstance(hosts, str | bytes):
        raise TypeError(f"allowed_hosts must be a list of hosts such as ['example.org'], got {hosts!r}")
    listed = list(hosts)
    if not listed or not all(isinstance(host, str) for host in listed):
        raise TypeError(f"allowed_hosts must be one or more hosts, each of them a str, got {listed!r}")
    return tuple(sorted({HostRule.of(host) for host in listed}, key=repr))
