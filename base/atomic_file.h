// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace plumb {

// Writes all of `bytes`. Returns 0 or the error number.
int write_all(int descriptor, std::string_view bytes);

// Renames a file, never in the place of another one. Returns 0 or the error number.
int rename_new(const std::string& from, const std::string& to);

enum class OnDisk { now, later };

// Puts `text` in the place of `path`, through a file .<name>.<random number>.part beside it, so that several
// processes and hosts may. On disk when it returns, or when the system gets to it: then a process that is
// killed leaves it whole, a host that loses power may not. Returns "" or why it can't be written; then `path`
// is as before.
std::string replace_file(const std::filesystem::path& path, std::string_view text,
                         OnDisk on_disk = OnDisk::now);

// Throws Error(cannot_create) if something has that name.
void refuse_existing(const std::filesystem::path& path);

// Until publish(), the file is called <path>.part.<process id>; the destructor removes that.
class PartialFile {
 public:
  // Throws Error(cannot_create).
  explicit PartialFile(const std::filesystem::path& path);
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile();

  // Throws Error(io_error).
  void write(std::span<const std::byte> bytes);
  // Gives the file its name, without replacing one that has come into being meanwhile. Throws Error(io_error)
  // or Error(cannot_create).
  void publish();

 private:
  std::filesystem::path path_;
  std::string partial_;
  UniqueFd file_;
};

}  // namespace plumb
