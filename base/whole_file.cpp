#include "base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/paths.h"
#include "base/unique_fd.h"

namespace plumb {

std::string read_whole_file(const fs::path& path, const WholeFile& file) {
  const std::string name = file.name.empty() ? fmt::format("file '{}'", printable(path.string())) : file.name;
  const auto refuse_by_system = [&] {
    throw Error(ExitCode::bad_data, "cannot read {}: {}; {}", name, std::strerror(errno),
                errno == EACCES ? "allow reading it" : file.remedy);
  };
  const UniqueFd source(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would block
  struct stat status {};
  if (!source || ::fstat(source.get(), &status) != 0) refuse_by_system();
  if (!S_ISREG(status.st_mode))
    throw Error(ExitCode::bad_data, "{}: expected a regular file; {}", name, file.remedy);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > file.most_bytes)
    throw Error(ExitCode::bad_data, "{}: expected at most {} MiB, found {} bytes; {}", name,
                file.most_bytes >> 20, bytes, file.remedy);
  std::string text(bytes, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(source.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_by_system();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace plumb
