"""Posts requests of OTLP over HTTP, and says what became of each.

Source: OpenTelemetry Protocol specification, "OTLP/HTTP Response" and "Retryable Response Codes".
One difference: all of 5xx are tried again, as a span that is sent twice is the same span.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from gwmond import __version__
from gwmond.config.tracing import Export, headers_of
from gwmond.model.digits import is_number
from gwmond.traces.otlp import Request

_MOST_ANSWER = 65_536
_MOST_SHOWN = 200
_PROTOBUF = "application/x-protobuf"

_PATH = (
    "write the whole URL as the receiver's manual has it, in traces.endpoint (/v1/traces is added "
    "only to one without a path); the port is that of OTLP over HTTP (often 4318), not of gRPC"
)
_TOKEN = (
    'put what the receiver wants into traces.headers_file, for instance a line "Authorization: '
    'Bearer TOKEN"; a token may have expired'
)
_REMEDIES = {401: _TOKEN, 403: _TOKEN, 404: _PATH, 405: _PATH}
_BUSY = "the receiver answers, but cannot take traces now: see its log"
_UNFIT = (
    "see what it answers and its log: it has to take OTLP over HTTP in protobuf. Some want headers "
    "(traces.headers_file), or https:// in traces.endpoint"
)
_REACH = (
    "see whether the receiver runs at the host and port of traces.endpoint and takes OTLP over "
    "HTTP there (often port 4318; 4317 is gRPC's), and whether a firewall is between"
)
_TLS = (
    "name the CA that signed the receiver's certificate in traces.certificate; the certificate has "
    "to name the host of traces.endpoint. A receiver without TLS: write http://. One that wants a "
    "certificate of gwmond: traces.client_certificate"
)
_FILES = "mend the files that [traces] names: gwmond's user has to be able to read them"


class OtlpReply(NamedTuple):
    """What became of a request; ``detail`` says why it failed, or what the receiver warns of.

    ``again``: it may be sent again, after ``after_s`` if the receiver said so.  ``refused``: how
    many spans are lost.  ``sent``: bytes.  ``remedy``: what to do about a failure.
    """

    accepted: bool
    again: bool = False
    after_s: float | None = None
    detail: str = ""
    refused: int = 0
    sent: int = 0
    remedy: str = ""


class OtlpClient:
    """A connection to a receiver, made anew after each failure: files may have changed."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._client: httpx.Client | None = None
        self._socket: socket.socket | None = None
        url = urlsplit(export.url)
        self.where = f"{url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path}"

    def post(self, request: Request) -> OtlpReply:
        """Send a request; takes about twice the timeout at most, and never raises."""
        packed = self._export.options.compression == "gzip"
        body = gzip.compress(request.body, 3, mtime=0) if packed else request.body
        try:
            answer = self._post(body, request.spans, packed=packed)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ssl.SSLError) as error:
            answer = OtlpReply(
                accepted=False, again=True, detail=_said(error), remedy=_remedy(error)
            )
        if not answer.accepted:
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _post(self, body: bytes, spans: int, *, packed: bool) -> OtlpReply:
        client = self._client = self._client or self._opened()
        headers = {"Content-Type": _PROTOBUF, "Accept-Encoding": "identity"}
        if packed:
            headers["Content-Encoding"] = "gzip"
        late = threading.Timer(2 * self._export.options.timeout, self._hang_up)
        late.daemon = True
        late.start()
        try:
            with client.stream(
                *("POST", self._export.url),
                content=body,
                headers=headers,
                extensions={"trace": self._note},
            ) as response:
                answer = bytearray()
                for part in response.iter_raw():
                    answer += part
                    if len(answer) > _MOST_ANSWER:
                        break
        finally:
            late.cancel()
        return _answer(response, bytes(answer[:_MOST_ANSWER]), spans)._replace(sent=len(body))

    def _note(self, event: str, info: dict[str, Any]) -> None:
        """Note the socket: an extension of httpcore tells of each connection that is made."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")

    def _hang_up(self) -> None:
        """End the exchange, also of a receiver that never ends to say that it is at work (1xx)."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it has just been closed
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _opened(self) -> httpx.Client:
        options = self._export.options
        headers = {"User-Agent": f"gwmond/{__version__}", **headers_of(self._export)}
        context: ssl.SSLContext | bool = True
        if self._export.url.startswith("https:"):
            context = ssl.create_default_context(cafile=options.certificate or None)
            if options.client_certificate:
                context.load_cert_chain(options.client_certificate, options.client_key)
        return httpx.Client(headers=headers, verify=context, timeout=options.timeout)


def _answer(response: httpx.Response, body: bytes, spans: int) -> OtlpReply:
    status = response.status_code
    if 200 <= status < 300:
        reply = ExportTraceServiceResponse()
        if response.headers.get("content-type", "").partition(";")[0].strip() == _PROTOBUF:
            try:
                reply.ParseFromString(body)
            except DecodeError:
                reply.Clear()  # it has taken them, whatever it says besides
        partial = reply.partial_success
        refused = min(max(partial.rejected_spans, 0), spans)
        return OtlpReply(accepted=True, detail=_shown(partial.error_message), refused=refused)
    text = "" if b"\0" in body else body.decode("utf-8", "replace")
    detail = f"HTTP {status} {_shown(response.reason_phrase)}: {_shown(text)}".rstrip(": ")
    if status == 429 or status >= 500:
        return OtlpReply(False, True, _after_s(response), detail, remedy=_BUSY)
    return OtlpReply(False, detail=detail, refused=spans, remedy=_REMEDIES.get(status, _UNFIT))


def _after_s(response: httpx.Response) -> float | None:
    """Return the seconds of Retry-After, which are a number or a date; None without."""
    text = response.headers.get("retry-after", "").strip()
    if is_number(text):
        return float(text[:9])
    try:
        return (parsedate_to_datetime(text).astimezone(UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None


def _remedy(error: Exception) -> str:
    """Return what to do about an error before there is an answer."""
    if "[SSL" in str(error):
        return _TLS
    return _REACH if isinstance(error, httpx.HTTPError) else _FILES


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {_shown(str(error))}".rstrip(": ")


def _shown(text: str) -> str:
    """Return a text of the receiver's in one line of printable letters."""
    line = " ".join(text[: 4 * _MOST_SHOWN].split())
    return "".join(letter if letter.isprintable() else "?" for letter in line)[:_MOST_SHOWN]
