"""The shell around the script of a job in a container. After SIGTERM it ends with the last process of the job's group,
so that each of them has the time of `stop_grace`. Without SIGTERM it ends with the script: what that leaves in the
background has a moment to end by itself, and is named in the log. At its end the shell lists the files that the job
wrote (`LISTING`).

SIGTERM reaches every process of the group at once. A shell without a trap ends then, although the program that it runs
may save a checkpoint; and a container ends with its main process. Where jobs are processes, their supervisor waits.
"""

from __future__ import annotations

import shlex

from riseml.job_programs import EVENT_READER, write_program

LISTING = ".riseml/written"
"""The file below the working folder in which the shell lists, at its end, what was written there and in HOME_FOLDER:
lines of `ls -ln --full-time`, and `LISTING_END`. Without that the shell was killed, or the image has no `find` that
compares times."""

LISTING_END = b"\n"
"""The empty line behind a list that is complete."""

HOME_FOLDER = "/tmp/home"
"""The home folder of jobs in containers. It comes with the project, else the shell makes it. It is not /tmp itself,
whose files are never kept."""

_AROUND = r"""set -f
exec 3>&2 2>/dev/null
[ -d HOME_FOLDER ] || mkdir -p HOME_FOLDER
riseml_term=
riseml_reader=
trap riseml_term=1 TERM
@read@(exec 2>&3 3>&-; @run@)
riseml_code=$?
riseml_group=
riseml_list() {
  riseml_left=
  set +f
  set -- /proc/[0-9]*/stat
  set -f
  for riseml_file; do
    riseml_pid=${riseml_file#/proc/}
    riseml_pid=${riseml_pid%/stat}
    [ "$riseml_pid" != $$ ] && [ "$riseml_pid" != 1 ] && [ "$riseml_pid" != "$riseml_reader" ] || continue
    if [ -z "$riseml_group" ]; then
      read -r riseml_stat </proc/$$/stat
      set -- ${riseml_stat##*) }
      riseml_group=$3
    fi
    read -r riseml_stat <"$riseml_file" || continue
    set -- ${riseml_stat##*) }
    [ "$1" != Z ] && [ "$2" != "$riseml_reader" ] || continue
    [ "$3" = "$riseml_group" ] || [ "$riseml_term $PPID $2" = " 1 1" ] || continue
    riseml_left="$riseml_left $riseml_pid"
  done
}
riseml_name() {
  riseml_names=
  for riseml_pid in $1; do
    set -- $(tr -c ' -~' ' ' </proc/$riseml_pid/cmdline)
    [ -n "$1" ] || continue
    [ "$riseml_count" -lt 3 ] && riseml_names="$riseml_names, $(printf %.60s "${1##*/}${2:+ $2}")"
    riseml_count=$((riseml_count + 1))
  done
  riseml_names=${riseml_names#, }
  [ "$riseml_count" -le 3 ] || riseml_names="$riseml_names and $((riseml_count - 3)) more"
}
riseml_list
riseml_count=0
while [ -n "$riseml_left" ]; do
  [ -n "$riseml_term" ] || [ "$riseml_count" -lt 5 ] || break
  sleep 0.1 || sleep 1
  riseml_count=$((riseml_count + 1))
  riseml_list
done
if [ -n "$riseml_left" ] && [ -z "$riseml_term" ]; then
  riseml_count=0
  riseml_name "$riseml_left"
  riseml_end="so ends what it left in the background: $riseml_names (a last line \`wait\` lets that end first)"
  [ -z "$riseml_names" ] || printf '[riseml: the script has ended, and %s]\n' "$riseml_end" >&3
fi
@finish@riseml_write() {
  LC_ALL=C TZ=UTC0 find $riseml_folders \( -name .riseml -o -name __pycache__ -o -name .git -o -name .cache \
    -o -path 'HOME_FOLDER/.*' \) -prune -o ! -type d "$@" -exec ls -lnd --full-time {} + >.riseml/written &&
    echo >>.riseml/written
}
riseml_folders=.
[ -d HOME_FOLDER ] && riseml_folders='. HOME_FOLDER'
[ -d .riseml ] && ! riseml_write -cnewer /etc/hostname && riseml_start=$(stat -c %Y /etc/hostname) &&
  touch -d "@$((riseml_start - 1))" .riseml/started && riseml_write -newer .riseml/started
exit $riseml_code""".replace("HOME_FOLDER", HOME_FOLDER)
"""The engine writes /etc/hostname when it starts the container, after the files of the project. The `find` of busybox
has no -cnewer, and its -newer compares whole seconds.

Each program that it starts takes a millisecond of processor time, and a job may have 5 of each 100: so it does much
itself. `read` takes a system call for each byte, and reads no line of `/proc` where only the container's init is left.

Fields 3 to 5 of /proc/PID/stat are the state, the parent and the group (proc(5)). Its messages, such as
`Terminated`, are no output of the job. Without SIGTERM it also finds what has left the group: such processes are
children of the container's init. `executors.supervision.process_tree` says the same where jobs are processes."""


_READ = r"""riseml_read() {
  exec python3 -IS .riseml/event_reader.py "$@" @arguments@ 2>&3
}
@write@
if command -v python3 >/dev/null && [ -f .riseml/event_reader.py ]; then
  (trap '' TERM; sleep 2 >/dev/null 3>&-; riseml_read signal) &
  riseml_reader=$!
fi
"""
"""Starts the reader of files with metrics some time after the job: most short jobs write none, and it takes 30 ms of
processor time."""

_FINISH = r"""if [ -n "$riseml_reader" ]; then
  kill -s USR1 $riseml_reader
  wait $riseml_reader
  riseml_status=$?
  while [ $riseml_status -gt 128 ] && kill -0 $riseml_reader; do
    wait $riseml_reader
    riseml_status=$?
  done
  case $riseml_status in
    138 | 143)
      [ -z "$(find "$OUTPUT_DIR" -name '*tfevents*' -o -name meta.yaml -o -name '*.wandb')" ] || (riseml_read once) ;;
  esac
fi
"""
"""Tells the reader of the end. One that this signal has killed (138), or SIGTERM before it ignored that (143), had not
begun: then another one reads, if there are event files or runs. SIGTERM ends a `wait` before its time."""

_CHOOSE = 'riseml_choice=$1; shift; eval "$riseml_choice"'
"""Chooses the shell of the script in the process that becomes it (`script_shell`), which saves a start of `/bin/sh`."""


def wait_for_group(command: tuple[str, ...], reader: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the command of a job whose end, after SIGTERM, is that of its last process; else that of `command`.

    Args:
        command: of `make_shell_command`; its last word is the script.
        reader: arguments of the program that reads event files beside the job, from `JOBS` on; empty: none does.
    """
    around = _AROUND.replace("@read@", _READ if reader else "").replace("@finish@", _FINISH if reader else "")
    if reader:
        around = around.replace("@arguments@", shlex.join(reader)).replace("@write@", write_program(*EVENT_READER))
    if command[:2] == ("/bin/sh", "-c"):
        _, _, choice, _, script = command
        return ("/bin/sh", "-c", around.replace("@run@", _CHOOSE), "riseml", choice, script)
    return ("/bin/sh", "-c", around.replace("@run@", 'exec "$@"'), "riseml", *command)
