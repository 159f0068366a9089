#include "base/process/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

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

}  // namespace

SignalWatch::SignalWatch() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_) throw Error(ExitCode::internal, "cannot watch signals: {}", std::strerror(errno));
}

SignalWatch::~SignalWatch() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalWatch::next() const {
  signalfd_siginfo info{};
  while (::read(descriptor(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
  return 0;
}

pid_t spawn_program(std::vector<std::string> words, const ProgramStreams& streams) {
  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.actions, streams.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&settings.actions, streams.errors, STDERR_FILENO);
  sigset_t none, all = watched_signals();
  sigemptyset(&none);
  sigaddset(&all, SIGPIPE);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words.front().c_str(), &settings.actions, &settings.attributes,
                                 pointers_to(words).data(), environ);
  return error == 0 ? child : -error;
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
