#include "base/process/side_by_side.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace plumb {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kEndGraceSeconds = 2;  // between SIGTERM and SIGKILL
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

void make_nonblocking(const UniqueFd& file) {
  ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) | O_NONBLOCK);
}

double seconds_from(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// A command from its start to its end; ended with its process group if that hasn't happened before.
class RunningCommand {
 public:
  RunningCommand(std::size_t index, const CommandWords& words, bool is_answered) : index_(index) {
    Pipe output, errors;
    std::optional<Pipe> input;
    if (is_answered) input.emplace();
    pid_ = spawn_program(
        words,
        {.input = input ? input->read.get() : -1, .output = output.write.get(), .errors = errors.write.get()},
        current_environment());
    if (pid_ < 0) {
      end_.code = 127;
      end_.errors = words.front() + ": " + std::strerror(-pid_);
      return;
    }
    output_ = std::move(output.read);
    errors_ = std::move(errors.read);
    make_nonblocking(output_);
    make_nonblocking(errors_);
    if (!input) return;
    input_ = std::move(input->write);
    make_nonblocking(input_);  // one that doesn't read must not stop the others
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

  void read(const SideBySideOptions& options) {
    read_from(errors_, end_.errors);
    if (end_.errors.size() > kMostOutputBytes) end_.errors.erase(0, end_.errors.size() - kMostOutputBytes);
    read_from(output_, end_.output);
    if (options.answer) answer_lines(options);
    if (end_.output.size() > kMostOutputBytes) end_.output.resize(kMostOutputBytes);
  }

  // True once the program has ended, whoever may still hold its pipes.
  bool has_ended(const SideBySideOptions& options) {
    if (pid_ <= 0) return true;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    pid_ = 0;
    end_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    end_.seconds = seconds_from(start_);
    read(options);
    return true;
  }

  void end_if_late(double timeout_seconds) {
    const double seconds = seconds_from(start_);
    if (seconds < timeout_seconds) return;
    if (!end_.timed_out) ::kill(-pid_, SIGTERM);
    end_.timed_out = true;
    if (seconds > timeout_seconds + kEndGraceSeconds) ::kill(-pid_, SIGKILL);
  }

  CommandEnd take_end() { return std::move(end_); }

 private:
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

  void answer_lines(const SideBySideOptions& options) {
    for (std::size_t newline; (newline = end_.output.find('\n', answered_)) != std::string::npos;) {
      const auto text = options.answer(index_, end_.output.substr(answered_, newline - answered_));
      answered_ = newline + 1;
      // A short text fits into the pipe's buffer, unless nobody reads: then there is no answer.
      if (input_ && (!text || ::write(input_.get(), text->data(), text->size()) < 0)) input_.reset();
    }
  }

  std::size_t index_, answered_ = 0;
  SteadyClock::time_point start_ = SteadyClock::now();
  pid_t pid_ = 0;
  UniqueFd input_, output_, errors_;
  CommandEnd end_;
};

using RunningCommands = std::vector<std::unique_ptr<RunningCommand>>;

// Until something was said, a command has ended, a signal came in, or time passed. Throws for a signal that
// asks to end.
void wait_for_any(const RunningCommands& running, const SignalWatch& signals) {
  std::vector<pollfd> files{{.fd = signals.descriptor(), .events = POLLIN, .revents = 0}};
  for (const auto& command : running)
    for (const UniqueFd* file : {&command->output(), &command->errors()})
      if (*file) files.push_back({.fd = file->get(), .events = POLLIN, .revents = 0});
  ::poll(files.data(), files.size(), kLongestPollMilliseconds);
  if (const int signal = signals.next(); signal != 0)
    throw Error(static_cast<ExitCode>(128 + signal), "ended by signal {} while commands ran on hosts",
                signal);
}

// A writer to a command that has ended gets an error instead of SIGPIPE.
class IgnoredBrokenPipes {
 public:
  IgnoredBrokenPipes() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~IgnoredBrokenPipes() { sigaction(SIGPIPE, &before_, nullptr); }
  IgnoredBrokenPipes(const IgnoredBrokenPipes&) = delete;
  IgnoredBrokenPipes& operator=(const IgnoredBrokenPipes&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace

std::vector<CommandEnd> run_side_by_side(const std::vector<CommandWords>& commands,
                                         const SideBySideOptions& options, const SignalWatch& signals) {
  const IgnoredBrokenPipes no_broken_pipes;
  std::vector<CommandEnd> ends(commands.size());
  RunningCommands running;
  for (std::size_t next = 0, ended = 0; ended < commands.size();) {
    while (next < commands.size() && running.size() < options.most_at_once) {
      running.push_back(
          std::make_unique<RunningCommand>(next, commands[next], static_cast<bool>(options.answer)));
      ++next;
    }
    wait_for_any(running, signals);
    const std::size_t before = running.size();
    std::erase_if(running, [&](const std::unique_ptr<RunningCommand>& command) {
      command->read(options);
      if (!command->has_ended(options)) {
        command->end_if_late(options.timeout_seconds);
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

}  // namespace plumb
