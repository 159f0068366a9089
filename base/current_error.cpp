#include "base/current_error.h"

#include <exception>
#include <new>
#include <system_error>

namespace plumb {

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ExitCode::out_of_memory, "the host has no memory left; use a smaller --bs or fewer ranks"};
  } catch (const std::exception& error) {
    const auto* of_system = dynamic_cast<const std::system_error*>(&error);
    if (of_system && of_system->code() == std::errc::resource_unavailable_try_again)
      return {ExitCode::out_of_memory,
              "cannot start more threads; raise the limits of processes and memory (ulimit -u, -v), or pass "
              "fewer --threads and --data-workers"};
    return {ExitCode::internal, "internal error: {}", error.what()};
  }
}

}  // namespace plumb
