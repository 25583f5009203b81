# Shared by up and down: where the private PostgreSQL lives, and whose it is.

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$scripts/engine/common.bash"

# Not below the home of root, which PostgreSQL's own user cannot enter; the path of a socket has to be short.
folder="$(realpath -m "${1:-${TMPDIR:-/tmp}/riseml-postgres-$EUID}")"
data="$folder/data"

# programs: where initdb and pg_ctl are; Debian keeps them out of the PATH. The newest version, if there are several.
programs() {
  local found
  found=$(command -v pg_ctl || ls -d /usr/lib/postgresql/*/bin/pg_ctl 2>/dev/null | sort -V | tail -n 1) || true
  [[ -z $found ]] || dirname "$(readlink -f "$found")" # a link may stand alone in its folder
}

# as_owner COMMAND...: PostgreSQL refuses to run as root.
as_owner() {
  if [[ $EUID = 0 ]]; then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups "$@")
  else
    (cd / && "$@")
  fi
}
