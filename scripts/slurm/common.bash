# Shared by up and down: the folder of a private Slurm cluster, and the names of its network namespaces.

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
here_slurm="$scripts/slurm"
source "$scripts/engine/common.bash"
export PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH" # never the commands of another private cluster

folder="$(realpath -m "${1:-${TMPDIR:-/tmp}/riseml-slurm-$EUID}")"
# A name of its own for each folder: several clusters run at once, and `down` touches no other namespace.
cluster="rs$(($(cksum <<<"$folder" | cut -d' ' -f1) % 100000))"

# in_cluster COMMAND...: runs a command of Slurm where the controller is.
in_cluster() { SLURM_CONF="$folder/slurm.conf" nsenter --net="/run/netns/$cluster-ctl" "$@"; }
