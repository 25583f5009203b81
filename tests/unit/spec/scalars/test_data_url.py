"""Addresses of data have one spelling, and no secret in them."""

from __future__ import annotations

import pytest

from riseml.spec.scalars.data_url import parse_data_url
from riseml.spec.scalars.texts import BadText


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://datasets/mnist/", "s3://datasets/mnist"),
        ("s3://datasets", "s3://datasets"),
        ("gs://a.b-c/x y/z", "gs://a.b-c/x y/z"),
        ("https://example.org:8443/mnist.npz", "https://example.org:8443/mnist.npz"),
        ("https://[::1]/x", "https://[::1]/x"),
        ("data://mnist/train", "data://mnist/train"),
    ],
)
def test_an_address_is_read(text: str, shown: str) -> None:
    assert str(parse_data_url(text)) == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("./mnist", "riseml cp ./mnist data://mnist"),
        ("/etc/passwd", "riseml cp"),
        ("file:///etc/passwd", "is not an address of data"),
        ("ftp://example.org/x", "is not an address of data"),
        ("s3://datasets/../other", "once, without . and .."),
        ("s3://datasets//x", "once, without . and .."),
        ("s3://data sets/x", "name of a bucket"),
        ("https://user:hush@example.org/x", "no user and no password"),
        ("https://example.org/x?token=hush", "holds a secret"),
        ("https://example.org/%2e%2e/x", "such as ?, # and %"),
        ("https://example.org/", "has no path"),
        ("https://Example.org/x", "name of a host"),
        ("data://", "has no path"),
        ("data://../x", "once, without . and .."),
        ("s3://datasets/a\nb", "not a name that a file can have"),
        ("s3://datasets/" + "x" * 300, "not a name that a file can have"),
        ("s3://datasets/" + "x/" * 600, "is not an address of data"),
    ],
)
def test_invalid_data_urls_are_refused(text: str, said: str) -> None:
    with pytest.raises(BadText) as raised:
        parse_data_url(text)
    assert said in f"{raised.value.problem} ({raised.value.hint})"
