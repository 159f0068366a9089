#include "base/process/this_process.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/error.h"
#include "base/text.h"

namespace plumb {

namespace fs = std::filesystem;

std::string environment_variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string path_of_program(const std::string& program) {
  const auto is_program = [](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) return is_program(program) ? program : "";
  for (const fs::path folder : split(environment_variable("PATH"), ':'))
    if (is_program(folder / program)) return (folder / program).string();
  return "";
}

fs::path path_of_this_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

void open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", O_RDWR);
    if (opened < 0 || opened == descriptor) continue;  // the lowest number that is free: usually this one
    ::dup2(opened, descriptor);
    ::close(opened);
  }
}

SignalWatch::SignalWatch() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
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

}  // namespace plumb
