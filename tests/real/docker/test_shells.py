"""The lines of `run` are bash where it is there: what they mean, and how a pipe ends; on engines and as processes."""

from __future__ import annotations

from tests.support.rig import Rig, single

CRASH = 'sh -c "echo begun; exit 7" 2>&1 | tee log.txt'
WORDS = [
    'sh -c "echo begun; echo trained >$OUTPUT_DIR/model" &> $OUTPUT_DIR/train.log',
    "if [[ $(cat $OUTPUT_DIR/model) == tr* ]]; then echo then; fi",
    "echo 'said=sourced' >$OUTPUT_DIR/env.sh; source $OUTPUT_DIR/env.sh; words=(a b {1..3})",
    'echo $said ${#words[@]}; cat $OUTPUT_DIR/train.log; [[ -e log ]] || echo "$(basename $BASH)"',
]
NO_BASH = "rm -f /bin/bash /usr/bin/bash"  # a step runs as root in the image


def said(rig: Rig, name: str) -> list[str]:
    """Return what the job has printed."""
    return [line.partition(" ")[2] for line in rig.lines(name, follow=False) if ".train " in line]


def shells(rig: Rig, name: str) -> tuple[str, str]:
    """Return the shell of the job, as the experiment and as its capsule have it. It is no metric."""
    found = rig.experiment(name)
    assert found["metrics"] == []
    assert [entry for entry in rig.logs(name, reports=True, follow=False) if entry["type"] == "report"] == []
    (job,) = [one for one in found["jobs"] if one["name"] == "train"]
    return job["shell"], rig.get(f"/v1/experiments/{name}/capsule")["capsule"]["jobs"][0]["shell"]


def test_words_of_bash_mean_what_their_writer_meant(shared_rig: Rig) -> None:
    """For sh, `&>` begins a program in the background: FINISHED before it has done anything."""
    name = shared_rig.submit(single(WORDS, install=["echo {1..2} >made; [[ -s made ]]"]))["id"]
    assert shared_rig.wait_closed(name)["state"] == "FINISHED", shared_rig.lines(name)
    assert said(shared_rig, name) == ["then", "sourced 5", "begun", "bash"]
    assert shells(shared_rig, name) == ("bash", "bash")


def test_a_pipe_fails_with_its_first_command_in_a_set_too(shared_rig: Rig) -> None:
    file = single(f"[ $AT = 2 ] || {{ echo well | cat; exit; }}\n{CRASH}", parameters={"at": [1, 2]})
    name = shared_rig.submit(file)["id"]
    members = [shared_rig.wait_closed(f"{name}.{number}") for number in (1, 2)]
    assert [(one["state"], one["exit_code"]) for one in members] == [("FINISHED", 0), ("FAILED", 7)]
    jobs = shared_rig.experiment(name)["experiments"]
    assert [one["state"] for one in jobs] == ["FINISHED", "FAILED"]


def test_sh_that_was_chosen_reads_the_lines(shared_rig: Rig) -> None:
    name = shared_rig.submit(single(f"{CRASH}\necho ${{BASH_VERSION:-no bash}}", shell="sh"))["id"]
    assert shared_rig.wait_closed(name)["state"] == "FINISHED", shared_rig.lines(name)
    assert said(shared_rig, name)[0] == "begun"
    assert shells(shared_rig, name) == ("sh", "sh")


def test_an_exit_code_of_a_pipe_whose_reader_left_has_advice(shared_rig: Rig) -> None:
    name = shared_rig.submit(single("yes | head -1"))["id"]
    found = shared_rig.wait_closed(name)
    assert (found["state"], found["exit_code"]) == ("FAILED", 141)
    assert "`set +o pipefail`" in shared_rig.experiment(name)["advice"]


def test_in_an_image_without_bash_sh_runs_the_lines_and_says_what_it_reads_otherwise(shared_docker_rig: Rig) -> None:
    rig = shared_docker_rig
    name = rig.submit(single(["echo a &> both", CRASH], install=[NO_BASH]))["id"]
    assert rig.wait_closed(name)["state"] == "FINISHED", rig.lines(name)
    notice = "riseml: there is no bash, so sh runs these lines: it reads `&>` in another way than bash"
    assert f"{notice}, and the exit code of a pipe is that of its last command" in said(rig, name)
    name = rig.submit(single("echo plain", install=[NO_BASH]))["id"]
    assert rig.wait_closed(name)["state"] == "FINISHED"
    assert said(rig, name) == ["plain"]
    assert shells(rig, name) == ("sh", "sh")
    name = rig.submit(single("echo never", install=[NO_BASH], shell="bash"))["id"]
    assert rig.wait_closed(name)["exit_code"] == 127
    assert "there is no bash, and `shell: bash` asks for it" in rig.experiment(name)["advice"]


def test_what_a_script_leaves_in_the_background_is_named_in_the_log(shared_rig: Rig) -> None:
    """A program that reads what the script prints gets the end of its input, and time for it."""
    lines = ["exec > >(sleep 0.2; cat) 2>&1; echo begun", "setsid sleep 601 &>/dev/null & sleep 602 &>/dev/null &"]
    name = shared_rig.submit(single(lines))["id"]
    assert shared_rig.wait_closed(name)["state"] == "FINISHED"
    printed = said(shared_rig, name)
    assert printed[0] == "begun"
    before, _, after = printed[1].partition("background: ")
    assert before == "[riseml: the script has ended, and so ends what it left in the "
    names, _, advice = after.partition(" (")
    assert sorted(names.split(", ")) == ["sleep 601", "sleep 602"]
    assert advice == "a last line `wait` lets that end first)]"
