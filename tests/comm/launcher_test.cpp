#include "comm/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace plumb {
namespace {

// A process of this name starts another one, which ends its launcher if it has one. Returns how the first
// ended.
int end_of_parent(const std::string& name) {
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::prctl(PR_SET_NAME, name.c_str());
    const pid_t child = ::fork();
    if (child == 0) {
      const auto launcher = parent_launcher();
      if (launcher) end_launcher_later(*launcher, std::chrono::seconds(0));
      ::_exit(launcher ? 0 : 1);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    if (WEXITSTATUS(ended) == 0)
      for (;;) ::pause();
    ::_exit(0);
  }
  int ended = 0;
  ::waitpid(parent, &ended, 0);
  return ended;
}

TEST(Launcher, IsEndedIfItServesOneJob) {
  for (const char* name : {"mpirun", "orted", "hydra_pmi_proxy"})
    EXPECT_TRUE(WIFSIGNALED(end_of_parent(name)) && WTERMSIG(end_of_parent(name)) == SIGKILL) << name;
}

TEST(Launcher, IsNotAShellOrADaemonOfSeveralJobs) {
  for (const char* name : {"sh", "prted", "slurmstepd"}) EXPECT_EQ(end_of_parent(name), 0) << name;
}

}  // namespace
}  // namespace plumb
