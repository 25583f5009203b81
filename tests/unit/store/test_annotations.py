"""What users say about experiments: changes, filters, and nothing lost beside the decisions of the loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riseml.base.annotations import MOST_TAGS, NO_ANNOTATION, Annotation
from riseml.base.errors import Refused
from riseml.base.states import State
from riseml.store.annotations import AnnotationFilter, AnnotationStore, AnnotationUpdate, Archived, Subject
from riseml.store.database import Database
from riseml.store.experiment_pages import ExperimentPages, PageQuery
from riseml.store.experiments import ExperimentStore
from tests.unit.store.submissions import NOW, submit

STORABLE = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300)


@pytest.fixture
def said(database: Database) -> AnnotationStore:
    return AnnotationStore(database)


def test_changes_add_up_and_the_same_change_again_changes_nothing(said: AnnotationStore) -> None:
    first = AnnotationUpdate(name="warm up", added=("baseline", "lr"), note="*1*", starred=True)
    for _ in range(2):
        after = said.change("paul", Subject(4), first)
        assert after == Annotation("warm up", ("baseline", "lr"), "*1*", starred=True)
    later = said.change("paul", Subject(4), AnnotationUpdate(name="", removed=("baseline", "x"), archived=True))
    assert later == Annotation("", ("lr",), "*1*", starred=True, archived=True)
    member = said.change("paul", Subject(4, 2), AnnotationUpdate(added=("best",)))
    assert said.load("paul", [4, 5]) == {Subject(4): later, Subject(4, 2): member}
    assert said.load("ann", [4]) == {}
    empty = AnnotationUpdate(note="", removed=("lr",), starred=False, archived=False)
    assert said.change("paul", Subject(4), empty) == NO_ANNOTATION
    assert said.load("paul", [4]) == {Subject(4, 2): member}, "nothing said has no row"


def test_tags_are_limited(said: AnnotationStore) -> None:
    said.change("paul", Subject(4), AnnotationUpdate(added=tuple(f"t{at}" for at in range(MOST_TAGS))))
    with pytest.raises(Refused, match="4 would have 51 tags"):
        said.change("paul", Subject(4), AnnotationUpdate(added=("one-more",)))
    assert len(said.load("paul", [4])[Subject(4)].tags) == MOST_TAGS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(note=STORABLE)
def test_a_note_comes_back_as_it_was_written(said: AnnotationStore, note: str) -> None:
    assert said.change("paul", Subject(1), AnnotationUpdate(note=note)).note == note
    assert said.load("paul", [1]).get(Subject(1), NO_ANNOTATION).note == note


def test_a_change_and_a_decision_of_the_loop_never_meet(said: AnnotationStore, experiments: ExperimentStore) -> None:
    read = submit(experiments)
    said.change("paul", Subject(read.number), AnnotationUpdate(note="while it ran"))
    ended = replace(read, state=State.FINISHED, closed=True, ended_at=NOW)
    assert experiments.save_decision(read, ended, NOW), "the version of the record is the one that the loop read"
    said.change("paul", Subject(read.number), AnnotationUpdate(added=("late",)))
    assert said.load("paul", [read.number]) == {Subject(read.number): Annotation("", ("late",), "while it ran")}


def test_lists_are_filtered_by_what_was_said(
    said: AnnotationStore, experiments: ExperimentStore, database: Database
) -> None:
    for count in 1, 2, 1, 1:  # experiment 2 is a set of two
        submit(experiments, count=count)
    for number in 1, 4:
        (detail,) = experiments.find_by_number("paul", number)
        ended = replace(detail.experiment, state=State.FINISHED, closed=True, ended_at=NOW)
        assert experiments.save_decision(detail.experiment, ended, NOW)
    said.change("paul", Subject(1), AnnotationUpdate(name="Warm Up", added=("a", "b"), archived=True))
    said.change("paul", Subject(2, 2), AnnotationUpdate(added=("a",), starred=True))
    said.change("paul", Subject(3), AnnotationUpdate(added=("A%",), archived=True))  # it has not ended
    pages = ExperimentPages(database)

    def ask(text: str = "", **conditions: object) -> list[int]:
        annotation_filter = AnnotationFilter(**conditions)  # type: ignore[arg-type]
        query = PageQuery(annotation_filter=annotation_filter, descending=False, text=text)
        paged = [detail.experiment.number for detail in pages.read_page("paul", query)]
        if not text:
            listed = experiments.list_experiments(
                "paul", ended=True, project=None, limit=None, annotation_filter=annotation_filter
            )
            assert [detail.experiment.number for detail in listed] == paged
        return list(dict.fromkeys(paged))

    assert ask() == [1, 2, 3, 4]
    assert ask(tags=("a",)) == [1, 2], "a set, by its member"
    assert ask(tags=("a", "b")) == [1]
    assert ask(tags=("A",)) == [], "another tag"
    assert ask(name="warm") == [1]
    assert ask(starred=True) == [2]
    assert ask(archived=Archived.HIDDEN) == [2, 3, 4], "what runs is in the list"
    assert ask(archived=Archived.ONLY) == [1, 3]
    assert (ask("warm"), ask("a%"), ask("b")) == ([1], [3], [1]), "words are also looked for in names and tags"
    assert said.list_words("paul", "", 10) == ["A%", "Warm Up", "a", "b"]
    assert list(said.find_subjects("paul", "a")) == [Subject(1), Subject(2, 2)]
