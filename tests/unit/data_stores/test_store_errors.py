"""What a store refuses is one sentence and one step, without the store's own words."""

from __future__ import annotations

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.remote import open_remote
from riseml.data_stores.store_errors import Purpose, explain_status
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import parse_data_url


@pytest.mark.parametrize(
    ("answer", "sentence", "hint"),
    [
        ("404/NoSuchBucket", "there is no bucket b at http://", "check the name and the endpoint"),
        ("403/AccessDenied", "the store lab has no right to read it", "allow it at the store"),
        ("403/SignatureDoesNotMatch", "the keys of the store lab are wrong (SignatureDoesNotMatch)", "change the keys"),
        ("403/InvalidAccessKeyId", "the keys of the store lab are wrong (InvalidAccessKeyId)", "change the keys"),
        ("400/ExpiredToken", "the keys of the store lab are wrong (ExpiredToken)", "change the keys"),
        ("400/AuthorizationHeaderMalformed", "us-east-1 is not its region", "write the region of the bucket"),
        ("403/RequestTimeTooSkewed", "the clock of this machine and that of the store differ", "set the clock"),
    ],
)
def test_a_refusal_is_one_sentence_and_one_step(
    web_site: tuple[str, list[dict[str, str]]], answer: str, sentence: str, hint: str
) -> None:
    store = Store("lab", (), endpoint=f"http://{web_site[0]}", access_key_id="OWN", secret_access_key="hush")
    with pytest.raises(EngineError) as raised:
        open_remote(parse_data_url(f"s3://b/refused/{answer}"), store).list_files()
    error = raised.value
    assert (error.permanent, sentence in error.message, hint in str(error.hint)) == (True, True, True), error
    assert "own words" not in error.message


@pytest.mark.parametrize(
    ("url", "purpose", "message", "hint"),
    [
        ("https://host/x", Purpose.FETCH, "cannot be fetched: the server answers 401", "riseml sends web servers none"),
        ("https://host/x", Purpose.FETCH, "cannot be fetched: the store answers 410", "check the address"),
        ("s3://b/x", Purpose.SAVE, "cannot be saved: the store answers 410", "stores.yml"),
    ],
)
def test_a_status_alone_says_what_was_done_and_what_to_do(url: str, purpose: Purpose, message: str, hint: str) -> None:
    status = int(message.rsplit(" ", 1)[1])
    error = explain_status(parse_data_url(url), status, purpose)
    assert (error.permanent, error.message) == (True, f"{url} {message}")
    assert hint in str(error.hint)
