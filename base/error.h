// The one error type of the libraries, and the exit codes that a user's scripts rely on.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace plumb {

// Exit codes of every program (sysexits.h where it has one; documented in README.md, "Exit codes").
enum class ExitCode : int {
  ok = 0,
  regression = 1,           // plumbline gate: significantly slower than the baseline
  usage = 64,               // unknown option or value; ranks that disagree
  bad_data = 65,            // missing, empty or broken input data
  unavailable = 69,         // no such device or library
  internal = 70,            // a defect of ours, or a device error
  out_of_memory = 71,       // with what was wanted, what was free and what would fit
  cannot_create = 73,       // an output exists already or can't be created
  io_error = 74,            // reading or writing failed while running
  peer_lost = 75,           // another rank died or hangs
  verification_failed = 76  // wrong sum, replicas differ, loss not finite
};

// A failure that a user can act on: one sentence that names the option or file, the value and the remedy.
// Libraries throw it; only mains (by bench/run/failures.h) turn `code` into the process's exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  // The sentence by fmt, of at least one value.
  template <typename First, typename... Others>
  Error(ExitCode code, fmt::format_string<First, Others...> sentence, First&& first, Others&&... others)
      : Error(code, fmt::format(sentence, std::forward<First>(first), std::forward<Others>(others)...)) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

// "file.cpp:12", for messages.
inline std::string place_of(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), where.line());
}

}  // namespace plumb
