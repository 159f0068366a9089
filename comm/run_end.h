// How a process of a run ends before its main returns: at once, whatever lock a stuck thread holds. Both
// functions are async-signal-safe.
#pragma once

#include <string_view>

namespace plumb {

// Writes the text to stderr as it is. Drops it if the reader is gone or doesn't read within a second.
void say_at_once(std::string_view text);

// Runs no destructor and flushes no stream.
[[noreturn]] void finish(int exit_code);

}  // namespace plumb
