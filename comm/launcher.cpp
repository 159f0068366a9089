#include "comm/launcher.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

namespace plumb {
namespace {

// Slurm reserves larger step ids (batch script, interactive shell, external): slurm/slurm.h,
// SLURM_MAX_NORMAL_STEP_ID.
constexpr std::int64_t kLastSrunStep = 0xfffffff0;
// Programs that serve a single job. PRRTE's prte and prted may serve several, and Slurm's slurmstepd ends by
// itself.
constexpr std::array kLaunchers{"mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra"};
constexpr std::array kDaemons{"orted", "hydra_pmi_proxy"};
constexpr std::chrono::milliseconds kBetweenProcessLooks{20};

std::optional<std::int64_t> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (!text) return std::nullopt;
  const std::string_view view(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> slurm_step_size(const Environment& environment) {
  const std::optional<std::int64_t> step = number(environment, "SLURM_STEP_ID");
  if (!step || *step > kLastSrunStep) return std::nullopt;
  const std::optional<std::int64_t> tasks = number(environment, "SLURM_STEP_NUM_TASKS");
  return tasks ? tasks : number(environment, "SLURM_NTASKS");
}

}  // namespace

LaunchedAs launched_as(const Environment& environment) {
  const auto get = [&](const char* name) { return number(environment, name); };
  const std::optional<std::int64_t> step_size = slurm_step_size(environment);
  for (const auto& [rank, size] : {std::pair{get("OMPI_COMM_WORLD_RANK"), get("OMPI_COMM_WORLD_SIZE")},
                                   {get("PMI_RANK"), get("PMI_SIZE")},
                                   {get("PMIX_RANK"), step_size},
                                   {get("SLURM_PROCID"), step_size}})
    if (rank && size && *rank < *size) return {static_cast<int>(*rank), static_cast<int>(*size)};
  return {};
}

bool has_launcher(const Environment& environment) {
  return std::ranges::any_of(std::array{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_FD", "PMIX_RANK"},
                             environment);
}

std::optional<pid_t> parent_launcher() {
  const pid_t parent = ::getppid();
  std::string name;
  std::ifstream file("/proc/" + std::to_string(parent) + "/comm");
  std::getline(file, name);
  if (!std::ranges::count(kLaunchers, name) && !std::ranges::count(kDaemons, name)) return std::nullopt;
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
    if (::kill(launcher, 0) != 0) std::_Exit(0);
    ::nanosleep(&kPause, nullptr);
  }
  ::kill(launcher, SIGKILL);
  std::_Exit(0);
}

}  // namespace plumb
