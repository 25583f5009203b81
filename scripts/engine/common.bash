# Shared by up, down and images: where the private engine lives, and how to ask whether an engine answers.

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
engine_dir="$(realpath -m "${RISEML_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/riseml}")/engine"
pidfile="$engine_dir/dockerd.pid"
private_host="unix://$engine_dir/docker.sock"
number=$(($(cksum <<<"$engine_dir" | cut -d' ' -f1) % 64)) # keeps private engines of different folders apart
bridge="riseml$number"

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# answers HOST: an engine answers at HOST.
answers() {
  case "$1" in
    unix://* | tcp://*) python3 "$here/ask.py" "$1" ping 2>/dev/null ;;
    *) command -v docker >/dev/null && timeout 15 docker -H "$1" version >/dev/null 2>&1 ;;
  esac
}

# runs PIDFILE WORD: the process named in PIDFILE lives and has WORD in its command line.
# Numbers of ended processes are given again, so a number alone proves nothing.
runs() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [[ -n $pid ]] &&
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# apt_install PACKAGE...: with fresh lists only if the present ones do not do.
apt_install() {
  local install=(apt-get install -y -qq --no-install-recommends "$@")
  export DEBIAN_FRONTEND=noninteractive
  "${install[@]}" >&2 || { apt-get update -qq >&2 && "${install[@]}" >&2; }
}

# apt_install_idle UNITS PACKAGE...: without starting what is in them: a machine that had no such server must not get one.
apt_install_idle() {
  local units=$1
  shift
  if [[ -d /run/systemd/system ]]; then
    systemctl mask --quiet $units
  elif [[ ! -e /usr/sbin/policy-rc.d ]]; then
    # Without systemd this file is what keeps a package from starting its server.
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
  fi
  apt_install "$@"
}

# context_host: the engine of the current docker context, if there is one.
context_host() {
  docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null || true
}
