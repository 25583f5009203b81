# Shared by up, down and halt: the folder of the private PostgreSQL, and the user that runs it.

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$scripts/engine/common.bash"

# Not below root's home, which the user postgres cannot enter. The path is short because it holds a socket.
folder="$(realpath -m "${1:-${TMPDIR:-/tmp}/riseml-postgres-$EUID}")"
data="$folder/data"

# programs: prints the folder of initdb and pg_ctl, the newest version's; Debian keeps them out of the PATH.
programs() {
  local found
  found=$(command -v pg_ctl || ls -d /usr/lib/postgresql/*/bin/pg_ctl 2>/dev/null | sort -V | tail -n 1) || true
  [[ -z $found ]] || dirname "$(readlink -f "$found")" # a link to pg_ctl may be in another folder than initdb
}

# as_owner COMMAND...: runs COMMAND as the user postgres when root calls, since PostgreSQL refuses to run as root.
as_owner() {
  if [[ $EUID = 0 ]]; then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups "$@")
  else
    (cd / && "$@")
  fi
}
