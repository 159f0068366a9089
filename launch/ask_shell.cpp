#include "launch/ask_shell.h"

#include <sys/wait.h>

#include <cstdio>

#include "base/unique_fd.h"
#include "launch/sweep/sweep_plan.h"

namespace plumb {

ShellAnswer ask_shell(const std::vector<std::string>& command) {
  ShellAnswer answer;
  std::FILE* pipe = ::popen((shell_text(command) + " 2>&1 </dev/null").c_str(), "re");
  if (pipe == nullptr) return answer;
  answer.text = read_rest(pipe);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) answer.code = WEXITSTATUS(status);
  return answer;
}

}  // namespace plumb
