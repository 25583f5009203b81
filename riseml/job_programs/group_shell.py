"""The shell around the script of a job in a container. After SIGTERM it ends with the last process of the job's group,
so that each of them has the time of `stop_grace`. At its end it lists the files that the job wrote (`LISTING`).

SIGTERM reaches every process of the group at once. A shell without a trap ends then, although the program that it runs
may save a checkpoint; and a container ends with its main process. Where jobs are processes, their supervisor waits.
"""

from __future__ import annotations

LISTING = ".riseml/written"
"""The file below the working folder in which the shell lists, at its end, what was written there: lines of `ls -ln`.
Without it the shell was killed, or the image has no `find` that compares times."""

_AROUND = r"""set -f
exec 3>&2 2>/dev/null
riseml_term=
trap riseml_term=1 TERM
(exec 2>&3 3>&-; exec "$@")
riseml_code=$?
read -r riseml_own </proc/$$/stat
riseml_is_alone() {
  IFS='
'
  for riseml_stat in $(set +f; cat /proc/[0-9]*/stat); do
    riseml_pid=${riseml_stat%% *}
    IFS=' '
    set -- ${riseml_stat##*) }
    [ "$3" != "$riseml_group" ] || [ "$1" = Z ] || [ "$riseml_pid" = $$ ] || [ "$2" = $$ ] || return 1
  done
}
set -- ${riseml_own##*) }
riseml_group=$3
while [ -n "$riseml_term" ]; do
  riseml_is_alone && break
  sleep 0.1 || sleep 1
done
[ -d .riseml ] && LC_ALL=C find . \( -name .riseml -o -name __pycache__ -o -name .git -o -name .cache \) -prune \
  -o ! -type d -cnewer /etc/hostname -exec ls -lnd {} + >.riseml/written.new && mv .riseml/written.new .riseml/written
exit $riseml_code"""
"""The engine writes /etc/hostname when it starts the container, after the files of the project.

Fields 3 to 5 of /proc/PID/stat are the state, the parent and the group (proc(5)). The shell leaves out itself and
its own children, which read these files. Its messages, such as `Terminated`, are no output of the job."""


def wait_for_group(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command of a job whose end, after SIGTERM, is that of its last process; else that of `command`."""
    return ("/bin/sh", "-c", _AROUND, "riseml", *command)
