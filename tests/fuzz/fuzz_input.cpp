#include "tests/fuzz/fuzz_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace plumb {

namespace fs = std::filesystem;

FileInMemory::FileInMemory(std::string_view bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  require(descriptor_ >= 0, "memfd_create failed");
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    require(written > 0, "a file in memory can't be written");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

FileInMemory::~FileInMemory() {
  ::close(descriptor_);
}

fs::path FileInMemory::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

FuzzFolder::FuzzFolder() {
  std::error_code ignored;
  const fs::path place = fs::is_directory("/dev/shm", ignored) ? "/dev/shm" : fs::temp_directory_path();
  path_ = place / ("plumb_fuzz_" + std::to_string(::getpid()));
  fs::remove_all(path_);
  fs::create_directory(path_);
}

FuzzFolder::~FuzzFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool FuzzFolder::write(const fs::path& name, std::string_view bytes) const {
  std::error_code failed;
  fs::create_directories((path_ / name).parent_path(), failed);
  std::ofstream file(path_ / name, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file);
}

nlohmann::ordered_json json_of(const std::uint8_t* data, std::size_t size) {
  return nlohmann::ordered_json::parse(text_of(data, size), nullptr, false);
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace plumb
