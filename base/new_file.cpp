#include "base/new_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace plumb {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::filesystem::path& path,
                         const std::string& why) {
  throw Error(ExitCode::cannot_create, "option " + option + ": '" + path.string() + "' " + why);
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

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
  const int made = ::mkstemp(probe.data());
  if (made < 0)
    refuse(option, path, std::string("can't be created: ") + std::strerror(errno) + "; give another name");
  ::close(made);
  ::unlink(probe.c_str());
}

void write_new_file(const std::string& option, const std::filesystem::path& path, std::string_view text) {
  check_new_file(option, path);
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wbx"));
  if (!file)
    refuse(option, path, std::string("can't be created: ") + std::strerror(errno) + "; give another name");
  if (std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() && std::fflush(file.get()) == 0)
    return;
  const std::string why = std::strerror(errno);
  file.reset();
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  throw Error(ExitCode::io_error, "option " + option + ": '" + path.string() + "' can't be written: " + why +
                                      "; make room and try again");
}

}  // namespace plumb
