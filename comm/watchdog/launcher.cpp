#include "comm/watchdog/launcher.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "comm/run_end.h"

namespace plumb {
namespace {

// PRRTE's prte and prted may serve several jobs, Slurm's slurmstepd ends by itself.
constexpr std::array<std::string_view, 7> kOfOneJob{"mpirun",  "mpiexec",       "orterun",        "orted",
                                                    "prterun", "mpiexec.hydra", "hydra_pmi_proxy"};
constexpr std::chrono::milliseconds kBetweenProcessLooks{20};

}  // namespace

std::optional<pid_t> parent_launcher() {
  const pid_t parent = ::getppid();
  std::string name;
  std::ifstream file("/proc/" + std::to_string(parent) + "/comm");
  std::getline(file, name);
  if (std::ranges::find(kOfOneJob, name) == kOfOneJob.end()) return std::nullopt;
  return parent;
}

// _Fork() leaves out the handlers that libraries have for fork(): another thread may be stuck in one of them.
// The child calls async-signal-safe functions only.
void end_launcher_later(pid_t launcher, std::chrono::seconds patience) {
  if (::_Fork() != 0) return;
  ::setsid();  // mpirun signals the groups of its children
  ::close_range(0, ~0u, 0);
  ::prctl(PR_SET_NAME, "plumb-end");
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kBetweenProcessLooks).count()};
  for (auto looks = patience / kBetweenProcessLooks; looks > 0; --looks) {
    if (::kill(launcher, 0) != 0) finish(0);
    ::nanosleep(&kPause, nullptr);
  }
  ::kill(launcher, SIGKILL);
  finish(0);
}

}  // namespace plumb
