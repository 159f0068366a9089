#include "bench/commands/messages.h"

#include <unistd.h>

#include <cstdio>

#include "base/text.h"
#include "results/analysis/analysis_text.h"

namespace plumb {

void print_messages(const std::vector<std::string>& notes, const std::vector<BadFile>& left_out,
                    bool verbose) {
  const std::size_t most_lines = verbose ? 0 : isatty(STDERR_FILENO) ? 20 : 4;
  for (const std::string& line : message_lines(notes, left_out, most_lines))
    std::fputs(fmt::format("plumbline: {}\n", line).c_str(), stderr);
}

}  // namespace plumb
