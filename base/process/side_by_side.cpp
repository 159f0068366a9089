#include "base/process/side_by_side.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
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

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw Error(ExitCode::unavailable, "cannot make a pipe: {}; raise the limit of open files (ulimit -n)",
                  std::strerror(errno));
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  UniqueFd read, write;
};

// Owns the file actions and attributes of a posix_spawnp.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// Starts a program in a process group of its own with default signals and nothing to read; the first word is
// looked for in PATH. `output`, `errors`: descriptors for what it prints. Returns its process id, or the
// negative errno.
pid_t spawn_program(const CommandWords& words, int output, int errors) {
  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&settings.actions, errors, STDERR_FILENO);
  sigset_t none, changed;  // by this process
  sigemptyset(&none);
  sigemptyset(&changed);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE}) sigaddset(&changed, signal);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &changed);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments =
      mapped(words, [](const std::string& word) { return const_cast<char*>(word.c_str()); });
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words.front().c_str(), &settings.actions, &settings.attributes,
                                 arguments.data(), environ);
  return error == 0 ? child : -error;
}

// A command from its start to its end; ended with its process group if that hasn't happened before.
class RunningCommand {
 public:
  // `file` gets what the command prints; without a file, CommandEnd keeps it.
  RunningCommand(std::size_t index, const CommandWords& words, const UniqueFd& file) : index_(index) {
    end_.began = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    if (file) {
      start(words, file.get(), file.get());
      return;
    }
    Pipe output, errors;
    start(words, output.write.get(), errors.write.get());
    output_ = std::move(output.read);
    errors_ = std::move(errors.read);
    for (const UniqueFd* read : {&output_, &errors_})
      ::fcntl(read->get(), F_SETFL, ::fcntl(read->get(), F_GETFL) | O_NONBLOCK);
  }
  ~RunningCommand() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  std::size_t index() const { return index_; }
  const UniqueFd& output() const { return output_; }
  const UniqueFd& errors() const { return errors_; }

  void read() {
    read_from(errors_, end_.errors);
    if (end_.errors.size() > kMostOutputBytes) end_.errors.erase(0, end_.errors.size() - kMostOutputBytes);
    read_from(output_, end_.output);
    if (end_.output.size() > kMostOutputBytes) end_.output.resize(kMostOutputBytes);
  }

  // True once the program has ended, whoever may still hold its pipes.
  bool has_ended() {
    if (pid_ <= 0) return true;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    pid_ = 0;
    end_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    end_.seconds = steady_seconds() - start_;
    read();
    return true;
  }

  // Kills it if it doesn't end within the grace.
  void tell_to_end(int signal) {
    ::kill(-pid_, signal);
    if (!told_to_end_) told_to_end_ = steady_seconds();
  }
  void end_if_late(double timeout_seconds, double grace_seconds) {
    if (!told_to_end_ && steady_seconds() - start_ >= timeout_seconds) {
      end_.timed_out = true;
      tell_to_end(SIGTERM);
    }
    if (told_to_end_ && steady_seconds() - *told_to_end_ > grace_seconds) ::kill(-pid_, SIGKILL);
  }

  CommandEnd take_end() { return std::move(end_); }

 private:
  void start(const CommandWords& words, int output, int errors) {
    pid_ = spawn_program(words, output, errors);
    if (pid_ >= 0) return;
    end_.code = 127;
    end_.errors = words.front() + ": " + std::strerror(-pid_);
  }

  static void read_from(UniqueFd& from, std::string& text) {
    char chunk[1 << 16];
    while (from) {
      const ssize_t count = ::read(from.get(), chunk, sizeof chunk);
      if (count > 0)
        text.append(chunk, static_cast<std::size_t>(count));
      else if (count < 0 && errno == EINTR)
        continue;
      else if (count < 0 && errno == EAGAIN)
        return;
      else
        from.reset();
    }
  }

  std::size_t index_;
  double start_ = steady_seconds();
  std::optional<double> told_to_end_;
  pid_t pid_ = 0;
  UniqueFd output_, errors_;
  CommandEnd end_;
};

using RunningCommands = std::vector<std::unique_ptr<RunningCommand>>;

// Until something was said, a command has ended, a signal came in, or time passed. Returns a signal that asks
// to end; 0: none came.
int wait_for_any(const RunningCommands& running, const SignalWatch& signals, int milliseconds) {
  std::vector<pollfd> files{{.fd = signals.descriptor(), .events = POLLIN, .revents = 0}};
  for (const auto& command : running)
    for (const UniqueFd* file : {&command->output(), &command->errors()})
      if (*file) files.push_back({.fd = file->get(), .events = POLLIN, .revents = 0});
  ::poll(files.data(), files.size(), milliseconds);
  return signals.next();
}

}  // namespace

std::vector<CommandEnd> run_side_by_side(const std::vector<CommandWords>& commands,
                                         const SideBySideOptions& options, const SignalWatch& signals) {
  std::vector<CommandEnd> ends(commands.size());
  RunningCommands running;
  for (std::size_t next = 0, ended = 0; ended < commands.size();) {
    while (next < commands.size() && running.size() < options.most_at_once) {
      running.push_back(std::make_unique<RunningCommand>(next, commands[next], UniqueFd()));
      ++next;
    }
    if (const int signal = wait_for_any(running, signals, kLongestPollMilliseconds); signal != 0)
      throw Error(static_cast<ExitCode>(128 + signal), "ended by signal {} while commands ran on hosts",
                  signal);
    const std::size_t before = running.size();
    std::erase_if(running, [&](const std::unique_ptr<RunningCommand>& command) {
      command->read();
      if (!command->has_ended()) {
        command->end_if_late(options.timeout_seconds, kEndGraceSeconds);
        return false;
      }
      ends[command->index()] = command->take_end();
      return true;
    });
    ended += before - running.size();
    if (options.told && running.size() < before) options.told(ended);
  }
  return ends;
}

ChildEnd run_child(CommandWords words, const std::filesystem::path& output, const SignalWatch& signals,
                   double timeout_seconds, const std::function<void()>& idle) {
  if (const int signal = wait_for_any({}, signals, 0); signal != 0) return {.signal = signal};
  const UniqueFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file)
    throw Error(ExitCode::cannot_create, "cannot create {}: {}; make room or pass another --output",
                output.string(), std::strerror(errno));
  if (path_of_program(words.front()).empty())
    throw Error(ExitCode::unavailable, "cannot start '{}'; install it or correct the sweep file",
                words.front());
  // util-linux before 2.33 has a setpriv without this option.
  static const bool can_die_with_us =
      run_side_by_side({{"setpriv", "--pdeathsig", "TERM", "true"}}, {.timeout_seconds = 5}, signals)
          .front()
          .code == 0;
  if (can_die_with_us) words.insert(words.begin(), {"setpriv", "--pdeathsig", "TERM"});
  RunningCommand child(0, words, file);
  ChildEnd end;
  const double limit = timeout_seconds > 0 ? timeout_seconds : std::numeric_limits<double>::infinity();
  while (!child.has_ended()) {
    if (const int signal = wait_for_any({}, signals, kLongestPollMilliseconds); signal != 0) {
      end.signal = signal;
      child.tell_to_end(signal);
    }
    child.end_if_late(limit, kChildGraceSeconds);
    idle();
  }
  const CommandEnd ended = child.take_end();
  if (!ended.errors.empty())  // the child's own messages are in the file, so it did not start
    throw Error(ExitCode::unavailable, "cannot start {}; install it or correct the sweep file", ended.errors);
  end.code = ended.code;
  end.timed_out = ended.timed_out;
  // Batch systems signal all processes of a job at once: the child may have ended before it was seen here.
  if (end.signal == 0 && end.code != 0) end.signal = wait_for_any({}, signals, 0);
  return end;
}

}  // namespace plumb
