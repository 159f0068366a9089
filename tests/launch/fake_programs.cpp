#include "tests/launch/fake_programs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

FakePrograms::FakePrograms(const std::string& keys, const std::string& devices) {
  for (const char* name : {"mpirun", "bench_resnet50"}) copy_of(name, name);
  write_sweep(keys, devices);
}

void FakePrograms::copy_of(const std::string& fake, const std::string& name) const {
  scratch_.write(name, read_text(std::string(PLUMB_FAKE_PROGRAMS "/") + fake));
  fs::permissions(path(name), fs::perms::owner_all);
}

void FakePrograms::write_sweep(const std::string& keys, const std::string& devices) const {
  scratch_.write("sweep.toml",
                 "[sweep]\n" + keys + "\n[launcher]\ncommand = '" + path("mpirun") +
                     "'\narguments = []\nprograms = '.'\n[[case]]\nmodel = 'resnet50'\n"
                     "devices_per_node = " +
                     devices + "\nbatch_sizes = [2]\nprecisions = ['fp32']\niterations = 4\nwarmup = 1\n");
}

void FakePrograms::write_hosts_sweep(const std::string& hosts, const std::string& cases) const {
  copy_of("mpirun_on_hosts", "on_hosts/mpirun");
  scratch_.write("sweep.toml",
                 "[sweep]\nrepetitions = 2\n[launcher]\n" + hosts +
                     "\nprograms = '.'\n[[case]]\nmodel = 'resnet50'\n" + cases +
                     "\nbatch_sizes = [2]\nprecisions = ['fp32']\niterations = 4\nwarmup = 1\n");
}

pid_t FakePrograms::start(const std::string& out, const std::string& arguments) const {
  const std::string script = "PATH=$PWD/on_hosts:$(dirname '" PLUMB_PLUMBLINE
                             "'):$PATH exec '" PLUMB_PLUMBLINE "' sweep sweep.toml --output '" +
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

int FakePrograms::processes() const {
  const fs::path folder = fs::canonical(scratch_.path());
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (fs::read_symlink(entry.path() / "cwd", error) == folder) ++count;
  return count;
}

}  // namespace plumb
