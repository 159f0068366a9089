// Every finding of `plumbline doctor`: a code that stays the same, how bad it is, what it is about, what to
// do. docs/reference/findings.md lists them.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "results/record/note.h"

namespace plumb {

struct FindingKind {
  std::string_view code;
  Severity severity;
  const char* check;    // Note::kind
  const char* entity;   // what it is about: host, gpu, port, program
  const char* meaning;  // the sentence itself, unless it has values
  const char* action;
};

inline constexpr const char* kCheckNetwork =
    "check its cable, its address in the ranks' network and its firewall: ranks connect to each other";

inline constexpr FindingKind kFindingKinds[]{
    {"clock", Severity::warning, "clock", "host", "clock is wrong",
     "synchronize clocks (chronyc tracking, timedatectl): stamps of logs won't fit together"},
    {"cpu-count", Severity::warning, "cpu", "host", "number of CPUs differs between hosts",
     "look for CPUs that are offline, hyper-threading that is off, and limits of a container"},
    {"cpu-load", Severity::warning, "load", "host", "other programs keep it busy",
     "end them or wait: steps would take longer and vary"},
    {"cpu-model", Severity::warning, "cpu", "host", "processor differs between hosts",
     "the slowest host sets the pace: leave the odd ones out, or expect their speed"},
    {"driver-old", Severity::error, "driver", "host", "the driver is too old for the program's CUDA",
     "install a newer driver"},
    {"driver-unused", Severity::note, "driver", "program",
     "the program was built without CUDA and leaves the GPUs idle",
     "install a package with CUDA to use them"},
    {"driver-version", Severity::warning, "driver", "host", "NVIDIA driver differs between hosts",
     "install the same driver on every host"},
    {"gpu-busy", Severity::warning, "gpu", "gpu", "a GPU is in use",
     "end what runs there (nvidia-smi), or leave the host out"},
    {"gpu-count", Severity::warning, "gpu", "host", "GPUs differ between hosts",
     "look for a GPU that fell off the bus (nvidia-smi, dmesg), or leave the host out"},
    {"gpu-ecc", Severity::warning, "gpu", "gpu", "a GPU's memory has had errors that ECC couldn't correct",
     "reset the GPU or reboot, and watch it: nvidia-smi -q -d ECC"},
    {"gpu-ecc-mode", Severity::warning, "gpu", "host", "ECC differs between hosts",
     "set it alike (nvidia-smi -e 0|1 and a reboot): it takes memory and bandwidth"},
    {"gpu-mig", Severity::warning, "gpu", "gpu", "a GPU is split up by MIG",
     "turn it off (nvidia-smi -mig 0): runs take whole GPUs"},
    {"gpu-missing", Severity::error, "gpu", "host", "fewer GPUs than --expect FILE says",
     "look for a GPU that fell off the bus (nvidia-smi, dmesg), or leave the host out"},
    {"gpu-rows-out", Severity::warning, "gpu", "gpu", "a GPU has no spare memory rows left",
     "have it replaced"},
    {"gpu-rows-reset", Severity::warning, "gpu", "gpu",
     "a GPU waits for a reset to replace faulty memory rows", "reset the GPU or reboot"},
    {"gpu-throttled", Severity::warning, "gpu", "gpu", "a GPU's clocks are held down before the run",
     "check cooling, power supply and power cap (nvidia-smi -q -d PERFORMANCE)"},
    {"host-unreachable", Severity::error, "reach", "host", "gives no answer", "log in there by hand"},
    {"interfaces", Severity::note, "network", "host", "interfaces differ between hosts",
     "nothing, if one network joins all hosts; else name it (docs/reference/environment.md)"},
    {"kernel-version", Severity::note, "kernel", "host", "kernel differs between hosts",
     "nothing, unless a host turns out slower"},
    {"library", Severity::warning, "libraries", "program", "a library of the program differs between hosts",
     "install the same version on every host, or use the bundle, which brings its libraries"},
    {"limit-differs", Severity::warning, "limits", "host", "a limit differs between hosts",
     "set the same limits on every host (/etc/security/limits.conf, for Slurm in slurmd's unit)"},
    {"limit-locked-memory", Severity::warning, "limits", "host",
     "locked memory is limited, and InfiniBand locks what it sends",
     "allow it (ulimit -l unlimited; for Slurm LimitMEMLOCK of slurmd)"},
    {"limit-open-files", Severity::warning, "limits", "host",
     "few files may be open at once, and every connection is one", "allow 1024 or more (ulimit -n)"},
    {"log-elsewhere", Severity::note, "log folder", "host",
     "its log folder is not the folder that the host that asks has",
     "look for logs and results on the host of rank 0, or name a shared --log-dir"},
    {"log-file-system", Severity::note, "log folder", "host",
     "file system of the log folder differs between hosts",
     "mount the same folder on every host if logs are to be shared"},
    {"log-full", Severity::warning, "log folder", "host", "little space is left in the log folder",
     "make room, or name another --log-dir and --output"},
    {"log-not-shared", Severity::warning, "log folder", "host",
     "its log folder is not the folder that others share", "mount it there, too"},
    {"log-read-only", Severity::warning, "log folder", "host", "the log folder can't be written",
     "give this user the right to, or name another --log-dir and --output"},
    {"memory-size", Severity::warning, "memory", "host", "memory differs from the median of the hosts",
     "look for a module that is missing or failed (dmidecode)"},
    {"mpi-daemon", Severity::warning, "mpi", "host",
     "Open MPI's orted or prted is not in PATH of a login without a terminal",
     "install Open MPI there, set PATH for such logins, or give mpirun --prefix; srun needs none"},
    {"mpi-differs", Severity::warning, "mpi", "host", "Open MPI of mpirun differs between hosts",
     "install the same Open MPI on every host, or put the same one first in PATH"},
    {"mpi-mixed", Severity::warning, "mpi", "host", "mpirun and the program's library are of two Open MPIs",
     "put the mpirun of the program's Open MPI first in PATH"},
    {"name-differs", Severity::warning, "names", "host", "hosts resolve a name to different addresses",
     "give the name one address in DNS, or in /etc/hosts on every host"},
    {"name-foreign", Severity::warning, "names", "host",
     "its name leads to an address that it doesn't have itself",
     "correct its entry in DNS or /etc/hosts; addresses behind NAT can't be used"},
    {"name-loopback", Severity::warning, "names", "host", "resolves a name to a loopback address",
     "take the name off the line of that address in its /etc/hosts"},
    {"name-missing", Severity::warning, "names", "host", "has no address for a name",
     "add it to DNS, or to /etc/hosts on every host"},
    {"name-slow", Severity::warning, "names", "host", "its name wasn't looked up in time",
     "find out why the name server is slow (/etc/resolv.conf), or put the hosts into /etc/hosts"},
    {"name-twice", Severity::warning, "names", "host", "two names lead to the same host",
     "name each host once"},
    {"name-unknown", Severity::warning, "names", "host",
     "its name has no address here, so mpirun can't reach it by that name",
     "add it to DNS or /etc/hosts; Slurm's srun needs none"},
    {"nccl-interface", Severity::note, "network", "host", "NCCL's interface for TCP differs between hosts",
     "if they aren't in one network, name those that are in NCCL_SOCKET_IFNAME"},
    {"network-host", Severity::error, "network", "host", "other hosts don't reach it over the network",
     kCheckNetwork},
    {"network-path", Severity::error, "network", "host", "doesn't reach a host over the network",
     kCheckNetwork},
    {"port-differs", Severity::warning, "network", "host", "InfiniBand and RoCE ports differ between hosts",
     "look for a cable that is out, a port that is down or slower, and an adapter that is missing"},
    {"port-inactive", Severity::warning, "network", "port", "no InfiniBand or RoCE port is active",
     "look at cable and switch (ibstat), or set NCCL_IB_DISABLE=1 on all hosts"},
    {"program-build", Severity::error, "program", "program", "build differs between hosts",
     "copy the same package to every host: ranks of different builds refuse to start"},
    {"program-start", Severity::error, "program", "program", "a program doesn't start",
     "copy the same package to the same path on every host, or name the program by --program"},
    {"shm-full", Severity::warning, "shared memory", "host",
     "/dev/shm has too little left for ranks' messages",
     "make room or enlarge it (containers: --shm-size=1g or --ipc=host)"},
};

// One of them by its code, which the compiler checks.
struct FindingCode {
  const FindingKind* kind;
  consteval FindingCode(const char* code)
      : kind(std::ranges::find(kFindingKinds, std::string_view(code), &FindingKind::code)) {
    if (kind == std::end(kFindingKinds)) throw "no such finding";
  }
};

}  // namespace plumb
