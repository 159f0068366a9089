#include "base/partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(ExitCode code, const fs::path& path, const std::string& what, int error_number) {
  throw Error(code, path.string() + ": " + what + " (" + std::strerror(error_number) +
                        "); choose another file or make room");
}

}  // namespace

void refuse_existing(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored)))
    throw Error(ExitCode::cannot_create, path.string() + " exists already; choose another file or remove it");
}

PartialFile::PartialFile(const fs::path& path)
    : path_(path), partial_(path.string() + ".part." + std::to_string(::getpid())) {
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(ExitCode::cannot_create, path_, "it can't be created", errno);
}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  ::unlink(partial_.c_str());
}

void PartialFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(ExitCode::io_error, path_, "writing failed", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void PartialFile::publish() {
  const bool synced = ::fsync(descriptor_) == 0 || errno == EINVAL || errno == EROFS;
  const int sync_error = errno;
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (!synced || !closed) fail(ExitCode::io_error, path_, "writing failed", synced ? errno : sync_error);
  if (::link(partial_.c_str(), path_.c_str()) == 0) return;
  // A file system without hard links.
  const bool no_links = errno == EPERM || errno == ENOTSUP || errno == ENOSYS;
  if (no_links && ::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0)
    return;
  fail(ExitCode::cannot_create, path_, "it can't be given its name", errno);
}

}  // namespace plumb
