"""The example with real TensorFlow on real digits, each of its ways to train."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.real.e2e.console import Console, Result
from tests.support.waiting import DEADLINE
from tests.support.web_scene import WAIT, go, open_browser

EXAMPLE = Path(__file__).parents[3] / "examples" / "ai-toaster"
CALLBACKS = "    callbacks = [\n"
PAUSED = """\
        tf.keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: __import__("signal").pause()
            if (epoch, os.environ["RISEML_JOB"], os.environ["RISEML_ATTEMPT"]) == (2, "worker.1", "1") else None
        ),
"""
LONG = 1000 * DEADLINE  # milliseconds until an environment is built and TensorFlow has begun


def find_cache() -> Path:
    """Outside of the repository, so that the digits are fetched once."""
    chosen = os.environ.get("RISEML_TEST_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "riseml"


@pytest.fixture(scope="module")
def toaster(tmp_path_factory: pytest.TempPathFactory, engine_url: str) -> Iterator[Console]:
    data = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", data / "digits"], check=True)
    home = tmp_path_factory.mktemp("toaster") / "home"
    console = Console(home, engine_url, EXAMPLE, RISEML_DATA=str(data), RISEML_BUILD_NETWORK="host").fork_server()
    yield console
    console.close()


ROLES = {"master", "worker.1", "worker.2", "ps.1"}


def test_the_example_learns_the_digits_and_is_watched_on_the_page(toaster: Console) -> None:
    """From before its first job to its end, without a reload: the sentence, the jobs, the timeline, the merged log."""
    with open_browser() as browser, browser.new_context() as context:
        page = context.new_page()
        go(page, lambda: str(toaster.ask("web")["url"]))
        page.evaluate("window.stayed = true")
        with toaster.start("train", "-p", "epochs=3") as running:
            name = running.wait_for(r"(?m)^(\d+) +\| ")[1]
            page.locator(f'tr[data-id="{name}"]').get_by_role("link", name=name, exact=True).click(timeout=WAIT)
            expect(page.get_by_text("4 jobs run on ")).to_be_visible(timeout=LONG)
            jobs = page.get_by_role("region", name="Jobs", exact=True)
            expect(jobs).to_contain_text("1 master, 2 worker, 1 ps")
            page.get_by_role("link", name="Log", exact=True).click()
            expect(page.get_by_text(re.compile("^epoch 1/3: loss"))).to_be_visible(timeout=LONG)
            result = running.finish()
        expect(page.locator(".sentence")).to_contain_text("finished", timeout=WAIT)
        expect(page.locator(".log-text").filter(has_text="test accuracy: ").first).to_be_visible(timeout=WAIT)
        page.get_by_role("link", name="Overview", exact=True).click()
        for job in sorted(ROLES):
            expect(jobs.get_by_role("row").filter(has_text=job)).to_be_visible(timeout=WAIT)
        timeline = page.get_by_role("region", name="Timeline", exact=True)
        expect(timeline).to_contain_text("ps.1", timeout=WAIT)
        assert page.evaluate("window.stayed") is True, "it was never loaded again"
    assert (result.code, result.err) == (0, ""), result.out
    _check_learned(toaster, result)


def test_digits_are_learned_by_the_graph_of_tensorflow_1(toaster: Console) -> None:
    result = toaster.run("train", "-f", "async-graph.yml", "-p", "steps=300")
    assert (result.code, result.err) == (0, ""), result.out
    _check_learned(toaster, result)


def _check_learned(toaster: Console, result: Result) -> None:
    found = toaster.ask("status", result.id)
    assert found["state"] == "FINISHED"
    assert {one["name"] for one in found["jobs"]} - {"build"} == ROLES
    accuracies = dict(re.findall(r"^\d+\.(\S+) .*test accuracy: ([0-9.]+)", result.out, re.MULTILINE))
    assert "master" in accuracies
    assert min(map(float, accuracies.values())) >= 0.85
    assert toaster.leftovers() == []


@pytest.fixture
def paused(tmp_path: Path) -> Path:
    """The example, whose chief waits for its end after the second epoch of its first attempt."""
    project = tmp_path / "ai-toaster"
    shutil.copytree(EXAMPLE, project)
    text = (project / "mirrored.py").read_text()
    assert CALLBACKS in text
    (project / "mirrored.py").write_text(text.replace(CALLBACKS, CALLBACKS + PAUSED))
    return project


def test_a_chief_that_is_killed_comes_back_in_its_place_and_all_learn_on(toaster: Console, paused: Path) -> None:
    """MultiWorkerMirroredStrategy ends every worker when one is lost: each of them has another attempt."""
    alone = ("--set", "train.retry.max=3", "--set", "train.retry.scope=role")
    with toaster.start("train", "-f", "mirrored.yml", "-p", "epochs=3", *alone, where=paused) as running:
        running.wait_for(r"worker\.1 .*epoch 2/3: loss")  # the backup of the first one is whole
        toaster.engine.api.kill(toaster.engine.find(toaster.server_id(), "worker.1"), "SIGKILL")
        result = running.finish()
    assert result.code == 0, result.out
    found = toaster.ask("status", result.id)
    attempts = {job["name"]: job["attempt"] for job in found["jobs"] if job["name"] != "build"}
    assert set(attempts) == {"worker.1", "worker.2"}
    assert attempts["worker.1"] > 1
    first = [line for line in result.lines("worker.1") if line.startswith("epoch 1/3")]
    assert len(first) == 1, "the second attempt goes on from the backup"
    accuracies = dict(re.findall(r"^\d+\.(\S+) .*test accuracy: ([0-9.]+)", result.out, re.MULTILINE))
    assert min(map(float, accuracies.values())) >= 0.85
    assert "worker.1" in accuracies
    assert toaster.leftovers() == []


def test_the_strategies_for_one_machine_learn_the_digits(toaster: Console) -> None:
    result = toaster.run("train", "-f", "one-host.yml", "-p", "epochs=1", "-p", "lr=0.005")
    assert (result.code, result.err) == (0, ""), result.out
    accuracies = dict(re.findall(r"([a-z-]+): test accuracy: ([0-9.]+)", result.out))
    assert set(accuracies) == {"one-device", "mirrored", "central-storage"}
    assert min(map(float, accuracies.values())) >= 0.85
    assert result.out.count("2 devices, loss") == 2


def test_the_evaluator_of_an_estimator_tests_what_the_workers_learn(toaster: Console, horovod_image: str) -> None:
    """The image of Horovod has TensorFlow 2.15, as the example."""
    words = ["-f", "estimator.yml", "--set", f"train.image={horovod_image}", "-p", "steps=400"]
    result = toaster.run("train", *words)
    assert (result.code, result.err) == (0, ""), result.out
    assert "chief 0 is worker 0 of 2 and has 2000 digits" in result.lines("master")
    assert "worker 0 is worker 1 of 2 and has 2000 digits" in result.lines("worker.1")
    tested = [line for line in result.lines("evaluator") if "test accuracy" in line]
    assert tested[-1].startswith("step 40")  # 400, and some more when both workers take the last step
    assert float(tested[-1].split()[-1]) >= 0.85
    assert toaster.leftovers() == []
