#include "bench/commands/messages.h"

#include <unistd.h>

#include <cstdio>

#include "results/analysis/analysis_text.h"

namespace plumb {

void print_messages(const std::vector<std::string>& notes, const std::vector<BadFile>& left_out,
                    bool verbose) {
  const std::size_t most_lines = verbose ? 0 : isatty(STDERR_FILENO) ? 20 : 4;
  for (const std::string& line : message_lines(notes, left_out, most_lines))
    std::fprintf(stderr, "plumbline: %s\n", line.c_str());
}

}  // namespace plumb
