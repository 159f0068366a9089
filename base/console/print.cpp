#include "base/console/print.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/paths.h"

namespace plumb {

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_text(const std::string& text) {
  if (std::fputs(printable_lines(text).c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  if (errno != EPIPE)  // else its reader wants no more
    throw Error(ExitCode::io_error, "cannot write to standard output: {}; make room and try again",
                std::strerror(errno));
}

}  // namespace plumb
