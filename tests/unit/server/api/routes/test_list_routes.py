"""Lists of experiments."""

from __future__ import annotations

import httpx


def test_lists_are_filtered_and_sorted(client: httpx.Client) -> None:
    def ask(**params: str | int) -> list[str]:
        answer = client.get("/v1/experiments", params={"all": "true", **params})
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["experiments"]]

    assert ask(sort="number") == ["1", "2", "3"]
    assert ask(sort="-number", limit=1, offset=1) == ["2"]
    assert ask(text="lr=0.2") == ["2"]
    assert ask(state="CREATED") == ["3"]
    assert ask(state="CREATED", user="somebody") == []
    for query, code in ("sort=-ended&before=3", 400), ("sort=size", 422), ("state=DONE", 422):
        assert client.get(f"/v1/experiments?{query}").status_code == code
    assert client.get("/v1/experiments?text=%00").status_code == 400
