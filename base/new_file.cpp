#include "base/new_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/atomic_file.h"
#include "base/error.h"

namespace plumb {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::filesystem::path& path,
                         const std::string& why) {
  throw Error(ExitCode::cannot_create, "option {}: '{}' {}", option, path.string(), why);
}

[[noreturn]] void refuse_creation(const std::string& option, const std::filesystem::path& path) {
  refuse(option, path, fmt::format("can't be created: {}; give another name", std::strerror(errno)));
}

}  // namespace

void check_new_file(const std::string& option, const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
    refuse(option, path, "exists already and is not replaced; give another name");
  if (!std::filesystem::is_directory(folder, error))
    refuse(option, path, "can't be created, its folder is not there; create the folder or give another name");
  // Only making a file shows that one can be made; it has no name afterwards.
  std::string probe = (folder / ".plumbline-").string() + std::string(6, 'X');
  const UniqueFd made(::mkstemp(probe.data()));
  if (!made) refuse_creation(option, path);
  ::unlink(probe.c_str());
}

void write_new_file(const std::string& option, const std::filesystem::path& path, std::string_view text) {
  check_new_file(option, path);
  const std::string unfinished = fmt::format("{}.part.{}", path.string(), ::getpid());
  const UniqueFd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) refuse_creation(option, path);
  int failure = write_all(file.get(), text);
  if (failure == 0) failure = rename_new(unfinished, path.string());
  if (failure == 0) return;
  ::unlink(unfinished.c_str());
  if (failure == EEXIST) refuse(option, path, "exists already and is not replaced; give another name");
  throw Error(ExitCode::io_error, "option {}: '{}' can't be written: {}; make room and try again", option,
              path.string(), std::strerror(failure));
}

void check_output(const std::string& option, const TextOutput& output) {
  std::error_code error;
  if (output.is_stdout()) return;
  const bool exists = std::filesystem::is_regular_file(output.path, error);
  if (exists && !output.overwrite)
    refuse(option, output.path, "exists already; give another name, or --overwrite to replace it");
  if (!exists) check_new_file(option, output.path);
}

void write_output(const std::string& option, const TextOutput& output, std::string_view text) {
  std::error_code error;
  if (output.is_stdout()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      throw Error(ExitCode::io_error,
                  "option {}: standard output can't be written: {}; make room and try again", option,
                  std::strerror(errno));
  } else if (output.overwrite && std::filesystem::is_regular_file(output.path, error)) {
    if (const std::string why = replace_file(output.path, text); !why.empty())
      throw Error(ExitCode::io_error, "option {}: '{}' can't be written: {}; make room and try again", option,
                  output.path, why);
  } else {
    write_new_file(option, output.path, text);
  }
}

}  // namespace plumb
