#!/usr/bin/env bash
# Carries out the steps of the Dockerfile beside it in a new, minimal Debian, without a container engine, and runs the
# programs there: on one rank, on two, and on two pods of an MPIJob. Wants root, debootstrap and a network.
#
#   launch/container/check_recipe.sh [--debs FOLDER]
#
#   --debs  folder of the packages that the recipe installs; default: built in build/deb, without GPUs, for CPUs of
#           x86-64-v3
# It reads FROM debian:…, ARG, ENV, COPY, RUN and WORKDIR. The pods are hosts of tests/cluster/cluster.sh that share the
# new system; sshd and mpirun start by the lines of launch/run --via kubernetes.
# Exit codes: 0 the recipe is fine, 1 it isn't, 64 usage, 65 the recipe has something else, 69 root or a tool is missing.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
self=$(readlink -f "$0")
root=${self%/launch/*}
recipe=${self%/*}/Dockerfile
. "$root/launch/bootstrapped_root.sh"

# The container's variables: ARG's last until the recipe ends.
values=() arguments=() folder=/

# expand TEXT: with ${NAME} and $NAME of what the recipe has named so far.
expand() {
  local text=$1 one
  for one in "${values[@]}" "${arguments[@]}"; do
    text=${text//"\${${one%%=*}}"/"${one#*=}"}
    text=${text//"\$${one%%=*}"/"${one#*=}"}
  done
  echo "$text"
}

# For try, too: in the folder that WORKDIR named.
in_system() {
  # shellcheck disable=SC2034 # for inside
  local all=("${arguments[@]}" "${values[@]}")
  inside all /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$folder" "$@"
}

from() {
  case $1 in
    debian:12) bootstrap bookworm ;;
    debian:13) bootstrap trixie ;;
    *) give_up 65 "$recipe begins FROM $1, where debian:12 or debian:13 is wanted" ;;
  esac
}

# copy PATTERN… PLACE: files of the packages' folder.
copy() {
  local place=$system${!#}
  [[ $place != */ ]] && [ $# -eq 2 ] || mkdir -p "$place"
  # shellcheck disable=SC2086 # patterns
  for file in "${@:1:$#-1}"; do cp -r "$debs"/$file "$place"; done
}

argument() {
  [[ $1 != *=* ]] || arguments+=("$(expand "$1")")
}

# step INSTRUCTION WORDS
step() {
  local words
  echo "$1 $2" >&2
  # RUN's variables are its shell's.
  [ "$1" = RUN ] || read -ra words <<<"$(expand "$2")"
  case $1 in
    FROM) from "${words[@]}" ;;
    ARG) argument "$2" ;;
    ENV)
      [[ $2 == *=* ]] || give_up 65 "$recipe: 'ENV $2' has no NAME=VALUE"
      values+=("${words[@]}")
      ;;
    COPY) copy "${words[@]}" ;;
    RUN) in_system /bin/sh -c "$2" >"$system/tmp/step.log" 2>&1 || {
      tail -20 "$system/tmp/step.log" >&2
      give_up 1 "FAILED: RUN $2"
    } ;;
    WORKDIR) folder=${words[0]} && mkdir -p "$system$folder" ;;
    *) give_up 65 "$recipe has the instruction $1, which this script doesn't know" ;;
  esac
}

carry_out_recipe() {
  local line instruction='' lines
  mapfile -t lines < <(grep -v '^#' "$recipe")
  for line in "${lines[@]}"; do
    instruction+=${line%\\}
    [[ $line != *\\ ]] || continue
    [ -z "${instruction// /}" ] || step "${instruction%% *}" "${instruction#* }"
    instruction=
  done
  rm -f "$system/tmp/step.log"
  arguments=()
}

# As the operator mounts keys and the list of workers, for user root; `on n3` is the launcher.
try_pods() {
  local manifest words pods=(n1 n2) pod
  manifest=$("$root/launch/run" --via kubernetes --nodes ${#pods[@]} "${small[@]}")
  mapfile -t words < <(sed -n 's/^ *command: \["\(mpirun.*\)"\]$/\1/p' <<<"$manifest" | sed 's/", "/\n/g')
  sshd=$(sed -n 's/^ *command: \[\([^"]*\)\]$/\1/p' <<<"$manifest" | tr -d ,)
  [ -n "$sshd" ] && [ ${#words[@]} -gt 0 ] || give_up 1 "FAILED: the manifest has no commands"
  install -d -m 700 "$system/root/.ssh" "$system/etc/mpi"
  in_system ssh-keygen -q -t ecdsa -N '' -f /root/.ssh/id_rsa
  cp "$system/root/.ssh/id_rsa.pub" "$system/root/.ssh/authorized_keys"
  printf '%s slots=1\n' "${pods[@]}" >"$system/etc/mpi/hostfile"
  cp /run/plumb_cluster/hosts "$system/etc/hosts"
  for pod in "${pods[@]}"; do
    # shellcheck disable=SC2086 # sshd's words
    in_pod "$pod" $sshd 2>"$system/$pod.log" &
  done
  values+=(OMPI_MCA_orte_keep_fqdn_hostnames=true OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile
    OMPI_MCA_plm_rsh_args="-o ConnectionAttempts=10")
  in_pod n3 "${words[@]}" || { cat "$system"/n?.log && give_up 1 "FAILED: an MPIJob's launcher"; }
  echo "ok: two pods of an MPIJob"
}

in_pod() {
  local pod=$1
  shift
  # shellcheck disable=SC2016 # the inner shell's variables
  "$CLUSTER" on "$pod" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "${values[@]}" \
    /bin/sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$system" \
    /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$folder" "$@"
}

small=(bench_resnet50 --image-size 32 --bs 2 --iters 4 --warmup 1 --threads 1)
if [ "${1:-}" = --pods ]; then # in the cluster
  system=$2 folder=$3
  try_pods
  exit
fi
debs=
while [ $# -gt 0 ]; do
  case $1 in
    --debs)
      [ $# -gt 1 ] || give_up 64 "$1 wants a value"
      debs=$(readlink -f "$2")
      shift
      ;;
    *) give_up 64 "'$1' is not an option; there is --debs" ;;
  esac
  shift
done
require_chroot
[ -n "$debs" ] || make_packages "$root"
[ -f "$(echo "$debs"/plumbline-bench_*.deb)" ] || give_up 64 "there are no packages in $debs"
carry_out_recipe
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2)
try "a run on one rank" "${small[@]}"
try "a run on two ranks" "${mpirun[@]}" "${small[@]}"
try "collectives" "${mpirun[@]}" bench_allreduce -b 1K -e 1K -n 2 -w 1
try "analysis" plumbline analyze logs --iters 4 --warmup 1
code=0
"$root/tests/cluster/cluster.sh" 3 none "$self" --pods "$system" "$folder" || code=$?
[ $code = 77 ] || [ $code = 0 ] || give_up 1 "FAILED: two pods of an MPIJob"
echo "$recipe is fine"
