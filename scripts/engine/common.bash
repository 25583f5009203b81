# Shared by the scripts of this folder: the folder of a private engine, how to start one, and whether an engine answers.
# A script that sets `engine_name` before it sources this file works on the private engine of that name.

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache_dir="$(realpath -m "${RISEML_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/riseml}")"
engine_dir="$cache_dir/${engine_name:-engine}"
pidfile="$engine_dir/dockerd.pid"
private_host="unix://$engine_dir/docker.sock"
case "${engine_name:-engine}" in
  engine) place=0 ;;
  engine-newer-classic) place=1 ;;
  engine-newer-containerd) place=2 ;;
esac
# A different number for each cache, and for each of its three private engines.
number=$((($(cksum <<<"$cache_dir/engine" | cut -d' ' -f1) + 21 * place) % 64))
bridge="riseml$number"
address_pool="${address_pool:-198.19.128.0/17}" # for networks that riseml does not choose a subnet for

start_deadline=60 # seconds
data_root="$engine_dir/data"
exec_root="$engine_dir/exec"
log="$engine_dir/dockerd.log"

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# answers HOST: succeeds when an engine answers at HOST.
answers() {
  case "$1" in
    unix://* | tcp://*) python3 "$here/ask.py" "$1" ping 2>/dev/null ;;
    *) command -v docker >/dev/null && timeout 15 docker -H "$1" version >/dev/null 2>&1 ;;
  esac
}

# runs PIDFILE WORD: succeeds when the process named in PIDFILE is alive and has WORD in its command line.
# The kernel reuses the numbers of ended processes, so a number alone proves nothing.
runs() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [[ -n $pid ]] &&
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# apt_install PACKAGE...: installs packages; updates the package lists only if the first try fails.
apt_install() {
  # Another script may be installing at this moment: dpkg waits for it.
  local install=(apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@")
  export DEBIAN_FRONTEND=noninteractive
  "${install[@]}" >&2 || { apt-get update -qq >&2 && "${install[@]}" >&2; }
}

# apt_install_idle UNITS PACKAGE...: installs packages without starting their servers: a machine that had no such server
# must not get one.
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

# context_host: prints the engine of the current docker context, if there is one.
context_host() {
  docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null || true
}

# use_if_it_answers HOST: prints HOST and ends the script if an engine answers there.
use_if_it_answers() {
  [[ -n $1 ]] && answers "$1" || return 0
  echo "$1"
  exit 0
}

# install_docker: installs dockerd, iptables and ip with apt-get where they are missing.
install_docker() {
  command -v dockerd >/dev/null && command -v iptables >/dev/null && command -v ip >/dev/null && return
  say "installing Docker with apt-get"
  local packages=(docker.io iptables iproute2)
  {
    apt-cache show docker.io >/dev/null 2>&1 || apt-get update -qq
    # Newer releases have the docker command in a separate package.
    apt-cache show docker-cli >/dev/null 2>&1 && packages+=(docker-cli)
    apt_install "${packages[@]}"
  } >&2 || die 5 "apt-get could not install ${packages[*]}: read its message above, or install Docker yourself."
}

# start_engine COMMAND...: starts a private engine with COMMAND (`dockerd`, or a wrapper and `dockerd`), and waits until it
# answers.
start_engine() {
  local net=$number
  # Docker, containerd and runc are Go programs, and start thousands of short ones: with fewer collections of their garbage
  # these take a third less processor time, and more memory.
  export GOGC=400
  runs "$pidfile" "--pidfile=$pidfile" || rm -f "$pidfile"
  runs "$exec_root/containerd/containerd.pid" "$exec_root" || rm -f "$exec_root/containerd/containerd.pid"
  if [[ ! -e $pidfile ]]; then
    # The engine's own bridge, with addresses (RFC 2544) that no other engine assigns and this machine does not use.
    ip link show "$bridge" >/dev/null 2>&1 || ip link add "$bridge" type bridge
    while ip route show "198.19.$net.0/24" | grep -qv "dev $bridge "; do net=$(((net + 1) % 64)); done
    ip addr replace "198.19.$net.1/24" dev "$bridge"
    say "starting a private engine in $engine_dir"
    detach "$@" --host="$private_host" --data-root="$data_root" --exec-root="$exec_root" --pidfile="$pidfile" \
      --containerd-namespace="riseml$number" --containerd-plugins-namespace="riseml$number-plugins" \
      --bridge="$bridge" --default-address-pool="base=$address_pool,size=24"
  fi
  local tries=$((start_deadline * 5))
  until answers "$private_host"; do
    ((tries--)) || {
      tail -n 20 "$log" >&2
      die 5 "The private engine did not answer within $start_deadline s. The end of its log is above, all of it in $log."
    }
    sleep 0.2
  done
  weigh_containers
  echo "$private_host"
}

# weigh_containers: gives the containers of all private engines together the processor time of eight sessions. Linux
# gives them the weight of one; beside a dozen busy servers and browsers, Ray's cluster had no time to start in.
weigh_containers() {
  local group=/sys/fs/cgroup/cpu/docker weight=cpu.shares value=8192 # control groups 1
  [[ ! -e /sys/fs/cgroup/cgroup.controllers ]] || group=/sys/fs/cgroup/docker weight=cpu.weight value=800
  if ! { mkdir -p "$group" && echo "$value" >"$group/$weight"; } 2>/dev/null; then
    say "containers keep the weight of one session: $group/$weight cannot be written"
  fi
}

# detach COMMAND...: runs COMMAND in its own session without our open files: a caller that reads our output must not wait
# for it, and the lock must be released.
detach() {
  python3 - "$log" "$@" <<'PY'
import subprocess, sys

with open(sys.argv[1], "a") as log:
    subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
PY
}
