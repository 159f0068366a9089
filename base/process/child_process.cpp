#include "base/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMilliseconds = 200;
constexpr std::chrono::milliseconds kLeftoverGrace{3000};

// This process's environment with the mark in it.
std::vector<std::string> marked_environment(const std::string& mark) {
  const std::string begin = std::string(kSweepVariable) + "=";
  std::vector<std::string> variables = current_environment();
  std::erase_if(variables, [&](const std::string& variable) { return variable.starts_with(begin); });
  variables.push_back(begin + mark);
  return variables;
}

pid_t spawn(const ChildCommand& command) {
  const UniqueFd output(::open(command.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!output)
    throw Error(ExitCode::cannot_create, "cannot create {}: {}; make room or pass another --output",
                command.output.string(), std::strerror(errno));
  const pid_t child = spawn_program(command.words, {.output = output.get(), .errors = output.get()},
                                    marked_environment(command.mark));
  if (child < 0)
    throw Error(ExitCode::unavailable, "cannot start '{}': {}; install it or correct the sweep file",
                command.words.front(), std::strerror(-child));
  return child;
}

// Waits up to `milliseconds`. Returns a signal that is to end the sweep; 0: none came.
int next_signal(const SignalWatch& signals, int milliseconds) {
  pollfd ready{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, milliseconds) > 0 ? signals.next() : 0;
}

// A child that is killed, with everything that has the mark, unless it has been seen to end.
class Child {
 public:
  explicit Child(const ChildCommand& command) : mark_(command.mark), pid_(spawn(command)) {}
  ~Child() {
    if (!ended_) kill_all();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool ended() {
    if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return ended_;
  }
  void pass_on(int signal) const { ::kill(-pid_, signal); }
  void kill_all() {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    end_marked_processes(mark_, std::chrono::milliseconds(0));
  }
  int code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_); }

 private:
  std::string mark_;
  pid_t pid_;
  int status_ = 0;
  bool ended_ = false;
};

bool has_variable(const fs::path& process, const std::string& variable) {
  std::ifstream stream(process / "environ", std::ios::binary);
  const std::string text = '\0' + std::string((std::istreambuf_iterator<char>(stream)), {}) + '\0';
  return text.find('\0' + variable + '\0') != std::string::npos;
}

// Zombies have no environment left, and don't count.
std::vector<pid_t> marked_processes(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const fs::path& process : visible_entries("/proc", error)) {
    const pid_t pid = std::atoi(process.filename().c_str());
    if (pid > 0 && pid != getpid() && has_variable(process, std::string(kSweepVariable) + "=" + mark))
      found.push_back(pid);
  }
  return found;
}

}  // namespace

ChildEnd run_child(const ChildCommand& command, const SignalWatch& signals, double timeout_seconds,
                   const std::function<void()>& idle, std::chrono::seconds grace) {
  ChildEnd end;
  if ((end.signal = next_signal(signals, 0)) != 0) return end;
  Child child(command);
  const Clock::time_point start = Clock::now();
  Clock::time_point told_to_end{};
  while (!child.ended()) {
    const Clock::time_point now = Clock::now();
    const bool told = end.signal != 0 || end.timed_out;
    if (told && now - told_to_end > grace) {
      child.kill_all();
      break;
    }
    if (!told && timeout_seconds > 0 && now - start > std::chrono::duration<double>(timeout_seconds)) {
      end.timed_out = true;
      told_to_end = now;
      child.pass_on(SIGTERM);
    }
    if (const int signal = next_signal(signals, kPollMilliseconds); signal != 0) {
      if (!told) told_to_end = Clock::now();
      end.signal = signal;
      child.pass_on(signal);
    }
    idle();
  }
  end.code = child.code();
  // Batch systems signal all processes of a job at once: the child may have ended before it was seen here.
  if (end.signal == 0 && end.code != 0) end.signal = next_signal(signals, 0);
  // Ends ranks that have outlived their launcher.
  end_marked_processes(command.mark, kLeftoverGrace);
  return end;
}

int end_marked_processes(const std::string& mark, std::chrono::milliseconds grace) {
  std::vector<pid_t> left = marked_processes(mark);
  const int count = static_cast<int>(left.size());
  const Clock::time_point start = Clock::now();
  for (int signal = grace.count() > 0 ? SIGTERM : SIGKILL; !left.empty(); left = marked_processes(mark)) {
    for (const pid_t pid : left) ::kill(pid, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (Clock::now() - start > grace) signal = SIGKILL;
    if (Clock::now() - start > grace + std::chrono::seconds(10)) break;  // stuck in the kernel
  }
  return count;
}

std::string path_of_program(const std::string& program) {
  const auto is_program = [](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) return is_program(program) ? program : "";
  const char* folders = std::getenv("PATH");
  for (const fs::path folder : split(folders ? folders : "", ':'))
    if (is_program(folder / program)) return (folder / program).string();
  return "";
}

bool can_be_started(const std::string& program) {
  return !path_of_program(program).empty();
}

}  // namespace plumb
