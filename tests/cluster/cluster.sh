#!/usr/bin/env bash
# cluster.sh N RATE COMMAND…: makes hosts n1 to nN (10.77.0.1, …) out of network namespaces on a bridge that no real
# interface is part of, with links of RATE in both directions (1gbit, 100mbit …; none: as fast as it goes), runs
# COMMAND, and exits with its code; 77 and a sentence if this machine can't. Needs root, iproute2 and util-linux.
#
# Everything lives in namespaces that end with this process, even if it is killed: nothing is left to be removed, and
# several clusters run side by side. Files are shared by all hosts, but for /etc/hosts, /run, /dev/shm and TMPDIR.
#
# COMMAND finds this script's path in $CLUSTER, and calls it:
#   on HOST COMMAND…    runs it on that host
#   mpirun ARGS…        mpirun on n1 (or $MPIRUN), which reaches the others without ssh; ranks preload $PRELOAD
#   rate HOST|all RATE  changes links
#   link HOST up|down   plugs a host's cable in or out
#   address HOST INTERFACE ADDRESS/PREFIX   gives the host one more interface, which leads nowhere, as docker0 does
#   own HOST FOLDER     gives the host an empty FOLDER of its own from now on
#   sent HOST           bytes that the host has sent
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
self=$(readlink -f "$0")
state=/run/plumb_cluster  # inside the cluster's mount namespace

skip() {
  echo "skipped: no cluster of namespaces here: $1"
  exit 77
}

start() {
  [ "$(id -u)" = 0 ] || skip "it needs root"
  for tool in ip tc unshare setpriv mount hostname; do
    command -v "$tool" >/dev/null || skip "$tool is missing (Debian: iproute2, util-linux, hostname)"
  done
  unshare --net --mount --pid --fork true 2>/dev/null || skip "this root may not make namespaces"
  # unshare ignores SIGTERM, and would outlive this shell.
  setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc "$self" make "$@" &
  trap 'kill -9 $!; exit 143' INT TERM HUP
  code=0
  wait $! || code=$?
  exit $code
}

# As process 1 of the cluster.
make() {
  count=$1 rate=$2
  shift 2
  mount -t tmpfs tmpfs /run
  mkdir -p "$state" /run/netns
  printf '127.0.0.1 localhost\n' >"$state/hosts"
  ip link set lo up
  ip link add br0 type bridge 2>/dev/null || skip "the kernel has no bridges"
  ip link set br0 up
  for i in $(seq "$count"); do add_host "n$i" "10.77.0.$i"; done
  set_rate all "$rate" || skip "the kernel can't shape links (tc tbf)"
  export CLUSTER="$self"
  code=0
  "$@" || code=$?
  exit $code
}

add_host() {
  ip netns add "$1"
  ip link add eth0 netns "$1" type veth peer name "$1"
  ip -n "$1" addr add "$2/16" dev eth0
  ip -n "$1" link set lo up
  ip -n "$1" link set eth0 up
  # BBR, which some machines choose, holds back for 0.2 s every 10 s to probe a link: steps would vary by that.
  ip netns exec "$1" sysctl -qw net.ipv4.tcp_congestion_control=reno
  ip link set "$1" master br0 up
  echo "$2 $1" >>"$state/hosts"
  echo "$1" >>"$state/names"
  mkdir -p "$state/$1/tmp"
}

# burst RATE: what a link that was idle may send at once, beyond its rate: 2 ms, which timers keep up with, and a message
# at least.
burst() {
  mbit=${1%?bit}
  case $1 in
    *[0-9]gbit) mbit=$((mbit * 1000)) ;;
    *[0-9]mbit) ;;
    *) mbit=0 ;;
  esac
  echo $((mbit < 256 ? 64 : mbit / 4))kb
}

set_rate() {
  [ "$1" != all ] || set -- "$(cat "$state/names")" "$2"
  for host in $1; do
    tc qdisc del dev "$host" root 2>/dev/null || true
    tc -n "$host" qdisc del dev eth0 root 2>/dev/null || true
    [ "$2" != none ] || continue
    tc qdisc add dev "$host" root tbf rate "$2" burst "$(burst "$2")" latency 100ms
    tc -n "$host" qdisc add dev eth0 root tbf rate "$2" burst "$(burst "$2")" latency 100ms
  done
}

on() {
  host=$1
  shift
  # shellcheck disable=SC2016 # the inner shell's variables
  exec ip netns exec "$host" unshare --uts --ipc --mount sh -c '
    state=$1 host=$2
    shift 2
    hostname "$host"
    mount --bind "$state/hosts" /etc/hosts
    mount -t tmpfs tmpfs /dev/shm
    [ ! -e "$state/$host/own" ] ||
      while read -r folder; do mount --bind "$state/$host/folders/$folder" "$folder"; done <"$state/$host/own"
    export TMPDIR="$state/$host/tmp" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exec "$@"' on "$state" "$host" "$@"
}

case ${1:-} in
  [1-9]*) start "$@" ;;
  make) shift && make "$@" ;;
  on) shift && on "$@" ;;
  ssh) host=$2 && shift 2 && on "$host" sh -c "$*" ;;  # mpirun's: a host, then words of a command line
  mpirun)
    shift
    # All hosts share this machine's cores: ranks aren't bound, and yield while they wait.
    on n1 "${MPIRUN:-mpirun}" --mca plm_rsh_agent "$self ssh" --mca pml ob1 --mca btl tcp,vader,self \
      --mca mpi_yield_when_idle 1 --bind-to none ${PRELOAD:+-x LD_PRELOAD="$PRELOAD"} "$@" ;;
  rate) set_rate "$2" "$3" ;;
  link) ip link set "$2" "$3" ;;
  address)
    ip -n "$2" link add "$3" type bridge
    ip -n "$2" addr add "$4" dev "$3"
    ip -n "$2" link set "$3" up ;;
  own)
    mkdir -p "$3" "$state/$2/folders/$3"
    echo "$3" >>"$state/$2/own" ;;
  sent) ip netns exec "$2" cat /sys/class/net/eth0/statistics/tx_bytes ;;
  *) sed -n '2,/^set/p' "$self" | sed '$d;s/^# \{0,1\}//' && exit 64 ;;
esac
