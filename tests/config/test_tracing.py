"""Where traces go: the file's word, and that of OpenTelemetry's variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.config.settings import ConfigError, Traces, parse
from gwmond.config.tracing import export_of, headers_of

ALL = "OTEL_EXPORTER_OTLP_"
OWN = "OTEL_EXPORTER_OTLP_TRACES_"
HERE = "http://localhost:4318"


def options(**given: object) -> Traces:
    return parse({"traces": given}, "test", files="now").traces


@pytest.mark.parametrize(
    ("endpoint", "environ", "url"),
    [
        ("", {}, ""),
        (HERE, {}, f"{HERE}/v1/traces"),
        (f"{HERE}/", {}, f"{HERE}/v1/traces"),
        ("https://example.org/otlp/in", {}, "https://example.org/otlp/in"),
        ("", {f"{ALL}ENDPOINT": HERE}, f"{HERE}/v1/traces"),
        ("", {f"{ALL}ENDPOINT": f"{HERE}/a/"}, f"{HERE}/a/v1/traces"),
        ("", {f"{OWN}ENDPOINT": f"{HERE}/a/"}, f"{HERE}/a/"),
        ("", {f"{OWN}ENDPOINT": HERE, f"{ALL}ENDPOINT": "http://other"}, HERE),
        ("http://file", {f"{OWN}ENDPOINT": HERE}, "http://file/v1/traces"),
        ("http://file", {"OTEL_SDK_DISABLED": "True"}, ""),
        ("http://file", {"OTEL_TRACES_EXPORTER": "none"}, "http://file/v1/traces"),
        ("", {f"{ALL}ENDPOINT": HERE, "OTEL_TRACES_EXPORTER": "none"}, ""),
        ("", {f"{ALL}ENDPOINT": " "}, ""),
    ],
)
def test_url(endpoint: str, environ: dict[str, str], url: str) -> None:
    assert export_of(options(endpoint=endpoint), environ).url == url


def test_the_environment_says_what_the_file_does_not(tmp_path: Path) -> None:
    cert = tmp_path / "ca.pem"
    cert.write_text("x")
    environ = {
        f"{ALL}CERTIFICATE": str(cert),
        f"{ALL}COMPRESSION": "gzip",
        f"{OWN}COMPRESSION": "none",
        f"{ALL}TIMEOUT": "2500",
        f"{ALL}HEADERS": "authorization=Bearer%20abc, x-scope = 1",
        "OTEL_SERVICE_NAME": "pool",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=a%2Cb",
    }
    found = export_of(options(endpoint=HERE), environ)
    assert (found.options.certificate, found.options.compression) == (str(cert), "none")
    assert found.options.timeout == 2.5
    assert headers_of(found) == {"authorization": "Bearer abc", "x-scope": "1"}
    assert (found.service, found.resource) == ("pool", (("deployment.environment.name", "a,b"),))
    mine = export_of(options(endpoint=HERE, timeout="3s", compression="gzip"), environ)
    assert (mine.options.timeout, mine.options.compression) == (3, "gzip")
    del environ["OTEL_SERVICE_NAME"]
    assert export_of(options(endpoint=HERE), environ).service == "other"


@pytest.mark.parametrize(
    ("sampler", "argument", "ratio", "parent_based"),
    [
        ("always_on", "0.5", 1, False),
        ("always_off", "", 0, False),
        ("traceidratio", "0.25", 0.25, False),
        ("parentbased_always_on", "", 1, True),
        ("parentbased_always_off", "", 0, True),
        ("parentbased_traceidratio", "0.5", 0.5, True),
        ("parentbased_traceidratio", "", 1, True),
    ],
)
def test_samplers(sampler: str, argument: str, ratio: float, parent_based: bool) -> None:
    environ = {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument}
    found = export_of(options(endpoint=HERE), environ).options
    assert (found.ratio, found.parent_based) == (ratio, parent_based)
    own = export_of(options(endpoint=HERE, ratio=0.75, parent_based=True), environ).options
    assert (own.ratio, own.parent_based) == (0.75, True)


def test_headers_file_has_the_last_word(tmp_path: Path) -> None:
    path = tmp_path / "headers"
    path.write_text("# token\n\nauthorization: Bearer b:c\n")
    given = options(endpoint=HERE, headers_file=str(path))
    found = export_of(given, {f"{ALL}HEADERS": "authorization=a,x=1"})
    assert headers_of(found) == {"authorization": "Bearer b:c", "x": "1"}
    path.write_text("secret-without-colon")
    with pytest.raises(ValueError, match=r'headers:1: write "Name: value"$'):
        headers_of(found)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({f"{ALL}PROTOCOL": "grpc"}, f"{ALL}PROTOCOL: gwmond exports http/protobuf only"),
        ({f"{OWN}TIMEOUT": "10s"}, f"{OWN}TIMEOUT: "),
        ({f"{ALL}COMPRESSION": "zstd"}, f"{ALL}COMPRESSION: "),
        ({f"{ALL}CERTIFICATE": "/no/such"}, f"{ALL}CERTIFICATE: cannot read /no/such"),
        ({f"{ALL}CLIENT_KEY": "/no/such"}, f"{ALL}CLIENT_KEY: goes together with"),
        ({f"{ALL}HEADERS": "s3cret"}, f"{ALL}HEADERS: write NAME=VALUE"),
        ({"OTEL_TRACES_SAMPLER": "jaeger_remote"}, "OTEL_TRACES_SAMPLER: write one of always_on"),
        (
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"},
            "OTEL_TRACES_SAMPLER_ARG: write a number from 0 to 1",
        ),
        (
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
            "OTEL_TRACES_SAMPLER_ARG: ",
        ),
        ({f"{ALL}ENDPOINT": "localhost:4318"}, f"{ALL}ENDPOINT: is no URL"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        export_of(options(), {f"{ALL}ENDPOINT": HERE, **environ})
    assert str(caught.value).startswith(message)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"endpoint": "grpc://host:4317"}, "endpoint: is no URL of a receiver"),
        ({"endpoint": "http://user:s3cret@host"}, "endpoint: has a user or password"),
        ({"headers_file": "/no/such"}, "headers_file: cannot read /no/such"),
        ({"client_key": "/etc/passwd"}, "client_key: goes together with client_certificate"),
        ({"ratio": 1.5}, "ratio: must be at most 1"),
        ({"always": ["slowly"]}, "always[0]: "),
    ],
)
def test_what_is_wrong_in_the_file_is_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options(**given)
    assert f"traces.{message}" in str(caught.value)
    assert "s3cret" not in str(caught.value)
