#include "comm/watchdog/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "base/paths.h"
#include "comm/launched_as.h"

namespace plumb {
namespace {

constexpr std::array<std::string_view, 8> kOfOneJob{"mpirun",  "mpiexec", "orterun",       "orted",
                                                    "prterun", "prted",   "mpiexec.hydra", "hydra_pmi_proxy"};
constexpr std::string_view kServesJobs = "prte";
constexpr std::string_view kSlurm = "slurmstepd";
constexpr timespec kBetweenProcessLooks{.tv_sec = 0, .tv_nsec = 20'000'000};

struct ProcessFacts {
  std::array<char, 64> name{};
  char state = 0;  // 'S', 'T' …
  pid_t parent = 0;
  unsigned long started = 0;
};

// From /proc: "4711 (name) S …", the 22nd field is the start. Safe between fork and exit.
std::optional<ProcessFacts> facts_of(pid_t pid) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  std::array<char, 1024> text{};
  const int fd = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = fd < 0 ? -1 : ::read(fd, text.data(), text.size() - 1);
  if (fd >= 0) ::close(fd);
  const char* const open = std::strchr(text.data(), '(');
  const char* close = std::strrchr(text.data(), ')');
  if (bytes <= 0 || !open || !close || close < open) return std::nullopt;
  ProcessFacts facts;
  std::copy_n(open + 1, std::min<std::ptrdiff_t>(close - open - 1, facts.name.size() - 1),
              facts.name.begin());
  if (std::strlen(close) < 4) return std::nullopt;
  facts.state = close[2];
  facts.parent = static_cast<pid_t>(std::strtol(close + 3, nullptr, 10));
  for (int field = 2; field < 22 && close; ++field) close = std::strchr(close + 1, ' ');
  if (!close) return std::nullopt;
  facts.started = std::strtoul(close + 1, nullptr, 10);
  return facts;
}

bool has_ended(const ProcessFacts& facts) {
  return facts.state == 'Z' || facts.state == 'X';
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& thread : visible_entries("/proc/" + std::to_string(pid) + "/task", error)) {
    std::ifstream children(thread / "children");
    for (pid_t child = 0; children >> child;) pids.push_back(child);
  }
  return pids;
}

// The process itself, or the first of its descendants that has this name.
std::optional<pid_t> named_alike(pid_t pid, const std::array<char, 64>& name) {
  std::vector<pid_t> generation{pid};
  while (!generation.empty()) {
    std::vector<pid_t> next;
    for (const pid_t one : generation) {
      const std::optional<ProcessFacts> facts = facts_of(one);
      if (facts && facts->name == name) return one;
      const std::vector<pid_t> children = children_of(one);
      next.insert(next.end(), children.begin(), children.end());
    }
    generation = std::move(next);
  }
  return std::nullopt;
}

// Texts that each end with a zero.
std::vector<std::string> texts_of(pid_t pid, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file);
  std::vector<std::string> texts;
  for (std::string one; std::getline(stream, one, '\0');) texts.push_back(one);
  return texts;
}

// prted's namespace, "prte-host-4711@0" or "prterun-host-4711@0", begins with what started it
// (prte_plm_base_set_hnp_name of PRRTE 3).
bool belongs_to_prte(pid_t pid) {
  return std::ranges::any_of(texts_of(pid, "cmdline"), [](const std::string& word) {
    return word.starts_with(std::string(kServesJobs) + "-");
  });
}

LaunchedAs start_of(pid_t pid) {
  std::map<std::string, std::string, std::less<>> variables;
  for (const std::string& one : texts_of(pid, "environ"))
    if (const std::size_t sign = one.find('='); sign != std::string::npos)
      variables.emplace(one.substr(0, sign), one.substr(sign + 1));
  return launched_as([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

bool is_ours_to_end(const Launcher& launcher) {
  return launcher.ends_ranks() && !launcher.serves_jobs;
}

// fork() into a session of its own, as mpirun signals its children's groups. Without the handlers that
// libraries have for fork(): another thread may be stuck in any of them.
pid_t fork_apart() {
  const pid_t forked = ::_Fork();
  if (forked == 0) ::setsid();
  return forked;
}

// Safe between fork and exit.
void kill_after(const Launcher& launcher, std::chrono::seconds patience) {
  for (auto looks = patience / std::chrono::nanoseconds(kBetweenProcessLooks.tv_nsec);
       looks > 0 && ::kill(launcher.pid, 0) == 0; --looks)
    ::nanosleep(&kBetweenProcessLooks, nullptr);
  const std::optional<ProcessFacts> now = facts_of(launcher.pid);
  if (now && now->started == launcher.started) ::kill(launcher.pid, SIGKILL);
}

}  // namespace

std::string own_host() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

bool Launcher::is_gone() const {
  if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
  const std::optional<ProcessFacts> now = facts_of(pid);
  return now && (now->started != started || has_ended(*now));
}

// srun does with --kill-on-bad-exit only.
bool Launcher::ends_ranks() const {
  return name != kSlurm;
}

std::optional<Launcher> launcher_of(pid_t process) {
  std::optional<ProcessFacts> facts = facts_of(process);
  while (facts) {
    const pid_t pid = facts->parent;
    if (!(facts = facts_of(pid))) break;
    const std::string_view name(facts->name.data());
    if (name == kSlurm || name == kServesJobs || std::ranges::find(kOfOneJob, name) != kOfOneJob.end())
      return Launcher{.pid = pid,
                      .name = std::string(name),
                      .started = facts->started,
                      .serves_jobs = name == kServesJobs || (name == "prted" && belongs_to_prte(pid))};
  }
  return std::nullopt;
}

std::optional<Launcher> launcher_of_this_process() {
  return launcher_of(::getpid());
}

std::vector<StartedRank> ranks_started_by(const Launcher& launcher) {
  const std::optional<ProcessFacts> own = facts_of(::getpid());
  std::vector<StartedRank> ranks;
  for (const pid_t child : children_of(launcher.pid)) {
    const LaunchedAs started = start_of(child);
    if (started.size <= 1) continue;
    const pid_t pid = own ? named_alike(child, own->name).value_or(child) : child;
    const std::optional<ProcessFacts> facts = facts_of(pid);
    if (facts && !has_ended(*facts))
      ranks.push_back({started.rank, pid, facts->state == 'T' || facts->state == 't'});
  }
  std::ranges::sort(ranks, {}, &StartedRank::rank);
  return ranks;
}

void end_launcher_later(const Launcher& launcher, std::chrono::seconds patience) {
  if (!is_ours_to_end(launcher) || fork_apart() != 0) return;
  ::close_range(0, ~0u, 0);
  kill_after(launcher, patience);
  ::_exit(0);
}

LauncherFence::LauncherFence(const Launcher& launcher, std::chrono::seconds patience) {
  std::array<int, 2> ends{};
  if (!is_ours_to_end(launcher) || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return;
  if (fork_apart() == 0) {
    ::dup2(ends[1], 0);
    ::close_range(1, ~0u, 0);
    ::prctl(PR_SET_NAME, "launcher-fence");
    char byte = 0;
    if (::read(0, &byte, 1) == 0) kill_after(launcher, patience);
    ::_exit(0);
  }
  ::close(ends[1]);
  end_ = ends[0];
}

LauncherFence::~LauncherFence() {
  if (end_ < 0) return;
  ::send(end_, "", 1, MSG_NOSIGNAL);
  ::close(end_);
}

void end_slurm_step() {
  const char *const job = std::getenv("SLURM_JOB_ID"), *const step = std::getenv("SLURM_STEP_ID");
  if (!job || !step) return;
  const std::string name = std::string(job) + "." + step;
  const pid_t asking = ::_Fork();
  if (asking == 0) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::close_range(STDERR_FILENO + 1, ~0u, 0);
    ::execlp("scancel", "scancel", "--quiet", name.c_str(), nullptr);
    ::_exit(127);
  }
  if (asking < 0) return;
  constexpr int kLooks = 150;
  for (int looks = 0; looks < kLooks; ++looks) {
    if (::waitpid(asking, nullptr, WNOHANG) != 0) return;
    ::nanosleep(&kBetweenProcessLooks, nullptr);
  }
  ::kill(asking, SIGKILL);
}

void kill_same_program(pid_t pid) {
  std::error_code error;
  const auto theirs = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
  if (!error && theirs == std::filesystem::read_symlink("/proc/self/exe", error)) ::kill(pid, SIGKILL);
}

}  // namespace plumb
