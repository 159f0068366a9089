// A file that has its name only when it is whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace plumb {

// Throws Error(cannot_create) if something has that name.
void refuse_existing(const std::filesystem::path& path);

// Until publish(), the file is called <path>.part.<process id>; what is left of that goes when this does.
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
  int descriptor_ = -1;
};

}  // namespace plumb
