#include "base/process/side_by_side.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/steady_clock.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr double kEndGraceSeconds = 2, kChildGraceSeconds = 10;  // between SIGTERM and SIGKILL
constexpr int kLongestPollMilliseconds = 200;

// A file in memory, without a name.
UniqueFd memory_file() {
  UniqueFd file(::memfd_create("output", MFD_CLOEXEC));
  if (!file)
    throw Error(ExitCode::unavailable, "cannot make a file: {}; raise the limit of open files (ulimit -n)",
                std::strerror(errno));
  ::fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

off_t bytes_in(const UniqueFd& file) {
  struct stat status {};
  ::fstat(file.get(), &status);
  return status.st_size;
}

// At most kMostOutputBytes: the file's begin, or its end.
std::string text_in(const UniqueFd& file, bool its_end) {
  const off_t bytes = bytes_in(file);
  std::string text(std::min(static_cast<std::size_t>(bytes), kMostOutputBytes), '\0');
  const off_t first = its_end ? bytes - std::ssize(text) : 0;
  text.resize(
      static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(file.get(), text.data(), text.size(), first))));
  return text;
}

// Starts a program in a process group of its own with default signals and nothing to read; the first word is
// looked for in PATH. `output`, `errors`: descriptors for what it prints. It gets SIGTERM if this process
// dies. If it can't be started, its process says so and ends with code 127, as a shell does.
pid_t start_program(const CommandWords& words, int output, int errors) {
  std::vector<char*> arguments =
      mapped(words, [](const std::string& word) { return const_cast<char*>(word.c_str()); });
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0)
    throw Error(ExitCode::unavailable, "cannot start a process: {}; raise the limit of processes (ulimit -u)",
                std::strerror(errno));
  ::setpgid(child, child);  // here and there, as either may be first
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it has died already
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE}) ::signal(signal, SIG_DFL);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execvp(arguments.front(), arguments.data());
  ::dprintf(STDERR_FILENO, "%s: %s", arguments.front(), std::strerror(errno));
  ::_exit(127);
}

// A command from its start to its end; ended with its process group if that hasn't happened before.
class RunningCommand {
 public:
  RunningCommand(const CommandWords& words, int output, int errors)
      : pid_(start_program(words, output, errors)) {}
  ~RunningCommand() {
    if (pid_ == 0) return;
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  double seconds() const { return steady_seconds() - start_; }
  bool timed_out() const { return timed_out_; }

  // The code for CommandEnd once the program itself has ended, even if a child of it still writes.
  std::optional<int> end() {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Kills it if it doesn't end within the grace.
  void tell_to_end(int signal) {
    ::kill(-pid_, signal);
    if (!told_to_end_) told_to_end_ = steady_seconds();
  }
  void end_if_late(double timeout_seconds, double grace_seconds) {
    if (!told_to_end_ && seconds() >= timeout_seconds) {
      timed_out_ = true;
      tell_to_end(SIGTERM);
    }
    if (told_to_end_ && steady_seconds() - *told_to_end_ > grace_seconds) ::kill(-pid_, SIGKILL);
  }

 private:
  double start_ = steady_seconds();
  bool timed_out_ = false;
  std::optional<double> told_to_end_;
  pid_t pid_;
};

// One of several, with what it prints.
struct OneOfSeveral {
  std::size_t index;
  UniqueFd output = memory_file(), errors = memory_file();
  RunningCommand command;

  OneOfSeveral(std::size_t its_index, const CommandWords& words)
      : index(its_index), command(words, output.get(), errors.get()) {}

  // So that no command fills the memory.
  void end_if_it_prints_too_much() {
    constexpr off_t kMostKept = 16 * kMostOutputBytes;
    if (std::max(bytes_in(output), bytes_in(errors)) > kMostKept) command.tell_to_end(SIGTERM);
  }
};

// Waits until a signal comes in or the time is over. Returns a signal that asks to end; 0: none came.
int wait_for_any(const SignalWatch& signals, int milliseconds) {
  pollfd file{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
  ::poll(&file, 1, milliseconds);
  return signals.next();
}

}  // namespace

std::vector<CommandEnd> run_side_by_side(const std::vector<CommandWords>& commands,
                                         const SideBySideOptions& options, const SignalWatch& signals) {
  std::vector<CommandEnd> ends(commands.size());
  std::vector<std::unique_ptr<OneOfSeveral>> running;
  for (std::size_t next = 0, ended = 0; ended < commands.size();) {
    for (; next < commands.size() && running.size() < options.most_at_once; ++next)
      running.push_back(std::make_unique<OneOfSeveral>(next, commands[next]));
    if (const int signal = wait_for_any(signals, kLongestPollMilliseconds); signal != 0)
      throw Error(static_cast<ExitCode>(128 + signal), "ended by signal {} while commands ran on hosts",
                  signal);
    const std::size_t before = running.size();
    std::erase_if(running, [&](const std::unique_ptr<OneOfSeveral>& one) {
      RunningCommand& command = one->command;
      const std::optional<int> code = command.end();
      if (code)
        ends[one->index] = {.code = *code,
                            .timed_out = command.timed_out(),
                            .seconds = command.seconds(),
                            .output = text_in(one->output, false),
                            .errors = text_in(one->errors, true)};
      else
        one->end_if_it_prints_too_much(), command.end_if_late(options.timeout_seconds, kEndGraceSeconds);
      return code.has_value();
    });
    ended += before - running.size();
    if (options.told && running.size() < before) options.told(ended);
  }
  return ends;
}

ChildEnd run_child(const CommandWords& words, const std::filesystem::path& output, const SignalWatch& signals,
                   double timeout_seconds, const std::function<void()>& idle) {
  if (const int signal = wait_for_any(signals, 0); signal != 0) return {.signal = signal};
  const UniqueFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file)
    throw Error(ExitCode::cannot_create, "cannot create {}: {}; make room or pass another --output",
                output.string(), std::strerror(errno));
  if (path_of_program(words.front()).empty())
    throw Error(ExitCode::unavailable, "cannot start '{}'; install it or correct the sweep file",
                words.front());
  RunningCommand child(words, file.get(), file.get());
  ChildEnd end;
  const double limit = timeout_seconds > 0 ? timeout_seconds : std::numeric_limits<double>::infinity();
  std::optional<int> code;
  while (!(code = child.end())) {
    if (const int signal = wait_for_any(signals, kLongestPollMilliseconds); signal != 0) {
      end.signal = signal;
      child.tell_to_end(signal);
    }
    child.end_if_late(limit, kChildGraceSeconds);
    idle();
  }
  end.code = *code;
  end.timed_out = child.timed_out();
  // Batch systems signal all processes of a job at once: the child may have ended before it was seen here.
  if (end.signal == 0 && end.code != 0) end.signal = wait_for_any(signals, 0);
  return end;
}

}  // namespace plumb
