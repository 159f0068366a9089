#include "bench/output/partial_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace plumb {

namespace {

// A link that leads nowhere has the name, too.
bool is_taken(const std::string& path) {
  struct stat ignored {};
  return ::lstat(path.c_str(), &ignored) == 0;
}

}  // namespace

std::optional<PartialLog> PartialLog::create(const Output& log_dir, const std::string& path) {
  const std::string part = path + ".part";
  if (is_taken(path)) return std::nullopt;
  UniqueFd file(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!file) {
    if (errno == EEXIST) return std::nullopt;
    throw cannot_create(log_dir, fmt::format("cannot create {}: {}", part, std::strerror(errno)));
  }
  ::flock(file.get(), LOCK_EX | LOCK_NB);  // until it is closed: log_case.cpp sees that this run lives
  // Another run may have finished between the two calls, and so have freed the unfinished name.
  if (is_taken(path)) {
    ::unlink(part.c_str());
    return std::nullopt;
  }
  return PartialLog(path, std::move(file));
}

PartialLog::~PartialLog() {
  if (file_ && !published_ && is_empty() && has_name(file_.get(), part_path())) ::unlink(part_path().c_str());
}

void PartialLog::write(const std::string& text, std::int64_t iteration) {
  ssize_t count = 0;
  do {
    count = ::write(file_.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(text.size())) {
    written_bytes_ += count;
    return require_its_name();
  }
  const std::string why = count < 0 ? std::strerror(errno) : "no space for a whole line";
  failed_ = true;
  // Cut off a partial line, so that the rest of the log parses. The run has failed even if this fails too.
  const bool cut = count <= 0 || ::ftruncate(file_.get(), written_bytes_) == 0;
  throw Error(ExitCode::io_error,
              "log {} can't be written at iteration {}: {}{}; free space or give another --log-dir",
              part_path(), iteration, why, cut ? "" : ", its last line is torn");
}

// Another run's unfinished log may have the name.
void PartialLog::require_its_name() const {
  if (has_name(file_.get(), part_path())) return;
  throw Error(ExitCode::io_error,
              "log {} was removed, moved or replaced while the run wrote it; keep away from a run's logs",
              part_path());
}

void PartialLog::save() {
  if (failed_) throw Error(ExitCode::io_error, "log {} is incomplete and stays unfinished", part_path());
  if (::fsync(file_.get()) != 0)
    throw Error(ExitCode::io_error, "log {} can't be saved: {}", part_path(), std::strerror(errno));
}

void PartialLog::publish() {
  require_its_name();
  if (const int error = rename_new(part_path(), path_); error != 0)
    throw Error(error == EEXIST ? ExitCode::cannot_create : ExitCode::io_error,
                "log {} can't be renamed to {}: {}", part_path(), path_, std::strerror(error));
  published_ = true;
  const std::string folder = std::filesystem::path(path_).parent_path();
  const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) ::fsync(directory.get());
}

void PartialLog::withdraw() noexcept {
  if (published_ && rename_new(path_, part_path()) == 0) published_ = false;
}

}  // namespace plumb
