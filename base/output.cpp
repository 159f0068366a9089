#include "base/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ranges>
#include <thread>

namespace plumb {
namespace {

namespace fs = std::filesystem;

// An unfinished file is called by this much of its final name and 23 bytes more; NAME_MAX is 255.
constexpr std::size_t kNameBytes = 200;

std::string about(const Output& output, std::string_view why, std::string_view remedy) {
  const char* const blank = output.option.empty() ? "" : " ";
  return fmt::format("{}{}{}: {}; {}", output.option, blank, output.path, why, remedy);
}

// "the file", or the name of a file that belongs to the output.
std::string named(const Output& output, const fs::path& path, const char* what) {
  return path == output.path ? std::string("the ") + what : path.string();
}

Error cannot_write(const Output& output, const std::string& what, int error_number) {
  return {ExitCode::io_error, about(output, "cannot write " + what + ": " + std::strerror(error_number),
                                    "make room and try again")};
}

// Returns 0 or the error number.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Creates the unfinished file of `path`. Returns 0 or the error number.
int create_part(const fs::path& path, std::string& part, UniqueFd& descriptor) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) < 0) return errno;
  part = path.parent_path() /
         fmt::format(".{}.{:016x}.part", path.filename().string().substr(0, kNameBytes), number);
  descriptor = UniqueFd(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  return descriptor ? 0 : errno;
}

// Gives the unfinished file its name. Returns 0 or the error number.
int publish_part(const std::string& part, const UniqueFd& descriptor, const fs::path& path, bool replace) {
  const bool failed = ::fsync(descriptor.get()) != 0;
  if (failed && errno != EINVAL && errno != EROFS) return errno;  // these two: there is nothing to sync
  if (!replace) return rename_new(part, path);
  return std::rename(part.c_str(), path.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Error cannot_create(const Output& output, std::string_view why, std::string_view remedy) {
  const std::string another = "pass another " + (output.option.empty() ? "name" : output.option);
  return {ExitCode::cannot_create, about(output, why, remedy.empty() ? another : remedy)};
}

OutputFile::OutputFile(const Output& output, const fs::path& file, Existing existing)
    : output_(output), file_(file), existing_(existing) {
  struct stat status {};
  const bool is_taken = ::lstat(file_.c_str(), &status) == 0;
  if (!is_taken && errno != ENOENT) throw cannot_create_it(errno);
  if (!file_.has_filename()) throw cannot_create(output_, "expected the name of a file");
  if (is_taken && existing_ != Existing::replace) throw cannot_create_it(EEXIST);
  if (is_taken && (::stat(file_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)))
    throw cannot_create(output_, "only regular files are replaced");
  if (is_taken && ::access(file_.c_str(), W_OK) != 0) throw cannot_create_it(errno);
  if (const int error = create_part(file_, part_, descriptor_); error != 0) throw cannot_create_it(error);
}

OutputFile::~OutputFile() {
  if (descriptor_) ::unlink(part_.c_str());
}

Error OutputFile::cannot_create_it(int error_number) const {
  const std::string name = named(output_, file_, "file");
  if (error_number == EEXIST)
    return cannot_create(
        output_, name + " exists already",
        existing_ == Existing::ask ? fmt::format("pass another {}, or --overwrite", output_.option) : "");
  std::error_code error;
  const fs::path folder = file_.has_parent_path() ? file_.parent_path() : ".";
  if (error_number == ENOENT && !fs::exists(folder, error))
    return cannot_create(output_, fmt::format("folder {} does not exist", folder.string()),
                         fmt::format("create it or pass another {}", output_.option));
  return cannot_create(output_, fmt::format("cannot create {}: {}", name, std::strerror(error_number)));
}

void OutputFile::write(std::string_view bytes) {
  if (const int error = write_all(descriptor_.get(), bytes); error != 0)
    throw cannot_write(output_, named(output_, file_, "file"), error);
}

void OutputFile::publish() {
  const int error = publish_part(part_, descriptor_, file_, existing_ == Existing::replace);
  if (error == EEXIST) throw cannot_create_it(error);
  if (error != 0) throw cannot_write(output_, named(output_, file_, "file"), error);
  descriptor_.reset();
}

OutputFolder::OutputFolder(const Output& output, const fs::path& folder) : OutputFolder() {
  const auto refuse = [&](const fs::path& path, int error_number) {
    throw cannot_create(output, fmt::format("cannot create {}: {}", named(output, path, "folder"),
                                            std::strerror(error_number)));
  };
  struct stat status {};
  std::vector<fs::path> missing;
  fs::path path = folder;
  for (; !path.empty() && ::stat(path.c_str(), &status) != 0; path = path.parent_path()) {
    if (errno != ENOENT) refuse(path, errno);
    missing.push_back(path);
  }
  if (!path.empty() && !S_ISDIR(status.st_mode)) refuse(path, ENOTDIR);
  for (const fs::path& one : std::views::reverse(missing)) {
    if (::mkdir(one.c_str(), 0777) == 0)
      made_.push_back(one);
    else if (const int error = errno; error != EEXIST || ::stat(one.c_str(), &status) != 0)
      refuse(one, error);  // not another process that made it meanwhile
  }
}

void OutputFolder::remove_empty() {
  for (const fs::path& path : std::views::reverse(made_)) ::rmdir(path.c_str());
  made_.clear();
}

void check_output(const Output& output) {
  if (!output.is_stdout()) OutputFile(output, output.overwrite ? Existing::replace : Existing::ask);
}

void write_output(const Output& output, std::string_view text) {
  if (output.is_stdout()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      throw cannot_write(output, "standard output", errno);
    return;
  }
  OutputFile file(output, output.overwrite ? Existing::replace : Existing::ask);
  file.write(text);
  file.publish();
}

std::string replace_file(const fs::path& path, std::string_view text) {
  std::string part;
  UniqueFd descriptor;
  int error = create_part(path, part, descriptor);
  if (error == 0) error = write_all(descriptor.get(), text);
  if (error == 0) error = publish_part(part, descriptor, path, true);
  if (error == 0) return "";
  if (descriptor) ::unlink(part.c_str());
  return std::strerror(error);
}

int lock_within(int descriptor, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kBetweenTries{10};
  const auto start = std::chrono::steady_clock::now();
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return errno;
    if (std::chrono::steady_clock::now() - start >= patience) return EWOULDBLOCK;
    std::this_thread::sleep_for(kBetweenTries);
  }
  return 0;
}

bool has_name(int descriptor, const std::string& path) {
  struct stat own {};
  struct stat named {};
  return ::fstat(descriptor, &own) == 0 && ::lstat(path.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

int rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // File systems without it: a second name, which fails if that is taken, then the first one goes.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  return ::unlink(from.c_str()) == 0 ? 0 : errno;
}

}  // namespace plumb
