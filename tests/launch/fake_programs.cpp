#include "tests/launch/fake_programs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace plumb {
namespace {

namespace fs = std::filesystem;

// Doesn't exec the program, so both processes can be killed.
constexpr const char* kLauncher = R"sh(#!/bin/sh
shift 2
"$@" &
trap 'kill $!; wait; exit 143' TERM INT
wait $!
)sh";

// As launch/run starts it: -np R -H a:1,b:1 --map-by ppr:1:node …, then the program, whose case it gives.
constexpr const char* kHostsLauncher = R"sh(#!/bin/sh
nodes=$(echo "$4" | tr ',' '\n' | wc -l)
devices=$(($2 / nodes))
while [ "${1##*/}" != bench_resnet50 ]; do shift; done
exec "$@" --nodes=$nodes --devices-per-node=$devices
)sh";

// Options are read by the real program.
constexpr const char* kBench = R"sh(#!/bin/sh
case " $* " in *" --print-config "* | *" --dry-run "*) exec ')sh" PLUMB_BENCH_RESNET50 R"sh(' "$@" ;; esac
here=$(dirname "$0")
for word in "$@"; do
  value=${word#*=}
  case $word in
    --bs=*) bs=$value ;;
    --fp32) precision=fp32 ;;
    --nodes=*) nodes=$value ;;
    --devices-per-node=*) devices=$value ;;
    --run=*) run=$value ;;
    --log-dir=*) log_dir=$value ;;
    --out=*) out=$value ;;
  esac
done
fail=$here/fail_${nodes}n${devices}g
if [ -s "$fail" ]; then
  letters=$(cat "$fail")
  printf %s "${letters%?}" >"$fail"
  mkdir -p "$out/failed_run" && echo '{"status": "failed"}' >"$out/failed_run/result.json"
  echo 'bench_resnet50: out of memory: 5 GiB wanted, 4 GiB free; give --bs 2' >&2
  echo 'a line of the launcher' >&2
  exit 71
fi
mkdir -p "$log_dir/${nodes}n${devices}g" "$out/run_$$"
if [ -e "$here/interrupted" ]; then
  rm "$here/interrupted"
  echo '{"status": "failed", "failure": "interrupted by SIGTERM after 2 of 4 iterations"}' >"$out/run_$$/result.json"
  echo 'two lines' >"$log_dir/${nodes}n${devices}g/resnet50_b${bs}_${precision}_$run.log.part"
  echo 'bench_resnet50: interrupted by SIGTERM after 2 of 4 iterations' >&2
  exit 143
fi
log=$log_dir/${nodes}n${devices}g/resnet50_b${bs}_${precision}_$run.log
if [ -e "$log" ] || [ -e "$log.part" ]; then
  echo "bench_resnet50: $log exists" >&2
  exit 73
fi
for i in 0 1 2 3; do
  printf '2025-01-02 00:00:0%d,000-INFO: [Pass 0, train batch %d] \tloss 6.9990%d, acc1 0.00000, acc5 0.00000, lr 0.10000, elapse 0.020000 sec Epoch[0] Batch[%d]\tSpeed: %d.00 samples/sec\n' \
    $i $i "$run" $((i + 1)) $((nodes * devices * 100)) >>"$log.part"
done
[ ! -e "$here/pause" ] || sleep "$(cat "$here/pause")"
echo '{"status": "ok"}' >"$out/run_$$/result.json"
mv "$log.part" "$log"
[ ! -e "$here/pause" ] || sleep "$(cat "$here/pause")"
)sh";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

FakePrograms::FakePrograms(const std::string& keys, const std::string& devices) {
  for (const auto& [name, text] : {std::pair("mpirun", kLauncher), std::pair("bench_resnet50", kBench)}) {
    scratch_.write(name, text);
    fs::permissions(path(name), fs::perms::owner_all);
  }
  write_sweep(keys, devices);
}

void FakePrograms::write_sweep(const std::string& keys, const std::string& devices) const {
  scratch_.write("sweep.toml",
                 "[sweep]\n" + keys + "\n[launcher]\ncommand = '" + path("mpirun") +
                     "'\narguments = []\nprograms = '.'\n[[case]]\nmodel = 'resnet50'\n"
                     "devices_per_node = " +
                     devices + "\nbatch_sizes = [2]\nprecisions = ['fp32']\niterations = 4\nwarmup = 1\n");
}

void FakePrograms::write_hosts_sweep(const std::string& hosts, const std::string& cases) const {
  scratch_.write("on_hosts/mpirun", kHostsLauncher);
  fs::permissions(path("on_hosts/mpirun"), fs::perms::owner_all);
  scratch_.write("sweep.toml",
                 "[sweep]\nrepetitions = 2\n[launcher]\n" + hosts +
                     "\nprograms = '.'\n[[case]]\nmodel = 'resnet50'\n" + cases +
                     "\nbatch_sizes = [2]\nprecisions = ['fp32']\niterations = 4\nwarmup = 1\n");
}

pid_t FakePrograms::start(const std::string& out, const std::string& arguments) const {
  const std::string script = "PATH=$PWD/on_hosts:$PATH exec '" PLUMB_PLUMBLINE "' sweep sweep.toml --out '" +
                             out + "' " + arguments + " >output.txt 2>messages.txt </dev/null";
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (::chdir(scratch_.path().c_str()) == 0) ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
  ::_exit(127);
}

EndedSweep FakePrograms::wait(pid_t sweep) const {
  int status = 0;
  EXPECT_EQ(::waitpid(sweep, &status, 0), sweep);
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .output = read_text(path("output.txt")),
          .messages = lines_of(read_text(path("messages.txt")))};
}

EndedSweep FakePrograms::sweep(const std::string& out, const std::string& arguments) const {
  return wait(start(out, arguments));
}

std::set<std::string> FakePrograms::results(const std::string& out) const {
  std::set<std::string> found;
  for (const char* part : {"logs", "runs"}) {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(path(out) + "/" + part, error))
      if (entry.is_regular_file())
        found.insert(entry.path().lexically_relative(path(out)).string() + "\n" + read_text(entry.path()));
  }
  return found;
}

int FakePrograms::processes(const std::string& out) const {
  const std::string mark = "PLUMBLINE_SWEEP=" + fs::weakly_canonical(path(out)).string();
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (read_text(entry.path() / "environ").find(mark + '\0') != std::string::npos) ++count;
  return count;
}

}  // namespace plumb
