"""One connection: calls and streams with deadlines, credentials and errors as MendelError. Nothing here tries again."""
from __future__ import annotations

import contextlib
import os
import secrets
import pathlib
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

import grpc

from mendel.service._errors import MendelError
from mendel.service._messages import Method, message

_LOCAL = ("unix:", "unix-abstract:", "localhost:", "127.", "[::1]", "dns:///localhost:", "ipv4:127.", "ipv6:[::1]")
_OPTIONS: List[Tuple[str, Any]] = [
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.max_receive_message_length", 16 << 20),
]


def _read(path: Optional[str]) -> Optional[bytes]:
    return pathlib.Path(path).read_bytes() if path else None


def _authorization(address: str, ssl: bool, token: Optional[str], token_file: Optional[str]) -> Optional[str]:
    if token_file:
        lines = pathlib.Path(token_file).read_text().splitlines()
        if not lines or not lines[0]:
            raise MendelError("INVALID_ARGUMENT", f"{token_file} contains no token")
        token = lines[0]
    if not token:
        return None
    if not ssl and not address.startswith(_LOCAL):
        raise MendelError("INVALID_ARGUMENT", f"a token for {address} needs TLS: without it everybody on the way could read it")
    return f"Bearer {token}"


def to_error(error: grpc.RpcError) -> MendelError:
    """Code and message as they are; RetryInfo and the fields of a BadRequest from the details."""
    text, retry_after = error.details() or "", None
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        with contextlib.suppress(Exception):  # details are a hint; a malformed one changes nothing
            for detail in message("google.rpc.Status").FromString(value).details:
                name = detail.type_url.split("/")[-1]
                if name == "google.rpc.RetryInfo":
                    delay = message(name).FromString(detail.value).retry_delay
                    retry_after = delay.seconds + 1e-9 * delay.nanos
                elif name == "google.rpc.BadRequest":
                    for violation in message(name).FromString(detail.value).field_violations:
                        if violation.description not in text:
                            text += f"; {violation.field}: {violation.description}"
    return MendelError(error.code().name, text, retry_after)


class Channel:
    """As client/service/channel.h."""

    def __init__(self, address: str, *, ssl: bool, root_certificates: Optional[str], private_key: Optional[str],
                 certificate_chain: Optional[str], token: Optional[str], token_file: Optional[str], call_timeout: float):
        authorization = _authorization(address, ssl, token, token_file)
        # A new trace where the caller has none: the server's log and its spans have this program's calls under it.
        trace_parent = os.environ.get("TRACEPARENT") or f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
        self._metadata = (("authorization", authorization),) if authorization else ()
        if trace_parent.isascii() and trace_parent.isprintable() and trace_parent:
            self._metadata += (("traceparent", trace_parent),)
        self._timeout = call_timeout
        if bool(private_key) != bool(certificate_chain):
            raise MendelError("INVALID_ARGUMENT", "mutual TLS takes a private key and a certificate chain")
        if ssl:
            credentials = grpc.ssl_channel_credentials(_read(root_certificates), _read(private_key), _read(certificate_chain))
            self._channel = grpc.secure_channel(address, credentials, options=_OPTIONS)
        elif root_certificates or private_key:
            raise MendelError("INVALID_ARGUMENT", "certificates are of no use without TLS")
        else:
            self._channel = grpc.insecure_channel(address, options=_OPTIONS)

    def close(self) -> None:
        self._channel.close()

    def call(self, method: Method, request: Any) -> Any:
        stub = self._channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
        try:
            return stub(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise to_error(error) from None

    def write(self, method: Method, requests: Iterable[Any]) -> Any:
        stub = self._channel.stream_unary(method.path, method.request.SerializeToString, method.response.FromString)
        try:
            return stub(requests, metadata=self._metadata)
        except grpc.RpcError as error:
            raise to_error(error) from None

    def read(self, method: Method, request: Any) -> Iterator[Any]:
        stub = self._channel.unary_stream(method.path, method.request.SerializeToString, method.response.FromString)
        stream = stub(request, metadata=self._metadata)
        try:
            yield from stream
        except grpc.RpcError as error:
            raise to_error(error) from None
        finally:
            stream.cancel()


def default_address() -> str:
    return os.environ.get("MENDEL_SERVER", "localhost:8470")


ProgressFunction = Callable[[int, int], None]
