"""One attempt to send a message: one request, to a checked address, without redirects, proxies or cookies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx

from config import VERSION
from config.events.webhooks.addresses import Address, AddressRefused, Resolver
from config.events.webhooks.outcomes import MAX_ANSWER_BYTES, SECONDS_OF_AN_ATTEMPT, Outcome

MAX_RETRY_AFTER = timedelta(days=1)


class Sender:
    """Sends messages."""

    def __init__(self) -> None:
        self._resolver = Resolver()
        # With the certificates of httpx, or of SSL_CERT_FILE: a slim machine has none of its own.
        self._context = httpx.create_ssl_context()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        at, began = datetime.now(UTC), time.monotonic()
        found: tuple[object, ...] = ()
        try:
            async with asyncio.timeout(SECONDS_OF_AN_ATTEMPT):
                found = await self._exchange(url, headers, body)
        except TimeoutError:
            found = (None, f"No answer within {SECONDS_OF_AN_ATTEMPT:.0f} seconds.")
        except AddressRefused as refused:
            found = (None, str(refused))
        except Exception as error:  # noqa: BLE001 - an attempt is noted, whatever the receiver answers
            found = (None, f"{type(error).__name__}: {error}")
        return Outcome(at, round((time.monotonic() - began) * 1000), *found)  # type: ignore[arg-type]

    async def _exchange(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[object, ...]:
        target = httpx.URL(url)
        # As it stands in the URL: what httpx decodes, `socket` and `ssl` would encode as another name (IDNA 2003).
        name = target.raw_host.decode("ascii")
        addresses = await self._resolver.resolve(name, is_plain=target.scheme == "http")
        for remaining in reversed(range(len(addresses))):
            try:
                return await self._post(target, name, addresses[-1 - remaining], headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if not remaining:
                    raise
        raise OSError("The name has no address.")

    async def _post(
        self, target: httpx.URL, name: str, address: Address, headers: Mapping[str, str], body: bytes
    ) -> tuple[object, ...]:
        request = httpx.Request(
            "POST",
            target,
            headers={
                "User-Agent": f"users-resource-service/{VERSION}",
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
                "Connection": "close",
                **headers,
            },
            content=body,
            # TLS is for the name, whose certificate it asks for.
            extensions={"sni_hostname": name, "timeout": {}},
        )
        request.url = target.copy_with(host=str(address))
        # One connection: a pool would use it for another name that has the same address.
        async with httpx.AsyncHTTPTransport(verify=self._context, trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                answer = await _read(response)
            finally:
                await response.aclose()
        retry_after = _parse_retry_after(response.headers.get("Retry-After", ""))
        return response.status_code, "", answer, retry_after

    def close(self) -> None:
        self._resolver.close()


async def _read(response: httpx.Response) -> str:
    """How an answer begins, as text that PostgreSQL can store."""
    read = b""
    async for chunk in response.aiter_raw(MAX_ANSWER_BYTES):
        read += chunk
        if len(read) >= MAX_ANSWER_BYTES:
            break
    return read[:MAX_ANSWER_BYTES].decode(errors="replace").replace("\0", "\ufffd")


def _parse_retry_after(text: str) -> timedelta | None:
    """What Retry-After asks for (RFC 9110, section 10.2.3), if anything."""
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), MAX_RETRY_AFTER)
    try:
        wait = parsedate_to_datetime(text) - datetime.now(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(wait, timedelta(0)), MAX_RETRY_AFTER)
