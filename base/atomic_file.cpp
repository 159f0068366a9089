#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(ExitCode code, const fs::path& path, const char* what, int error_number) {
  throw Error(code, "{}: {} ({}); choose another file or make room", path.string(), what,
              std::strerror(error_number));
}

}  // namespace

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // File systems without it: a second name, which fails if that is taken, then the first one goes.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  return ::unlink(from.c_str()) == 0 ? 0 : errno;
}

std::string replace_file(const fs::path& path, std::string_view text, OnDisk on_disk) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) < 0) return std::strerror(errno);
  const std::string unfinished =
      path.parent_path() / fmt::format(".{}.{:016x}.part", path.filename().string(), number);
  const UniqueFd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return std::strerror(errno);
  int error = write_all(file.get(), text);
  if (error == 0 && on_disk == OnDisk::now && ::fsync(file.get()) != 0) error = errno;
  if (error == 0 && std::rename(unfinished.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return "";
  ::unlink(unfinished.c_str());
  return std::strerror(error);
}

void refuse_existing(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored)))
    throw Error(ExitCode::cannot_create, "{} exists already; choose another file or remove it",
                path.string());
}

PartialFile::PartialFile(const fs::path& path)
    : path_(path),
      partial_(fmt::format("{}.part.{}", path.string(), ::getpid())),
      file_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (!file_) fail(ExitCode::cannot_create, path_, "it can't be created", errno);
}

PartialFile::~PartialFile() {
  ::unlink(partial_.c_str());
}

void PartialFile::write(std::span<const std::byte> bytes) {
  const int error = write_all(file_.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (error != 0) fail(ExitCode::io_error, path_, "writing failed", error);
}

void PartialFile::publish() {
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS)
    fail(ExitCode::io_error, path_, "writing failed", errno);
  file_.reset();
  if (const int error = rename_new(partial_, path_); error != 0)
    fail(ExitCode::cannot_create, path_, "it can't be given its name", error);
}

}  // namespace plumb
