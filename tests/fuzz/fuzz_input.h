// Shared by all fuzz targets: bytes as a file, and the only errors a reader may throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "bench/data/image_decoder.h"

// FUZZ_TARGET(log) { … return 0; }: what is done with `size` bytes at `data`. A program of libFuzzer's holds
// one target (libfuzzer.cpp), that of replay.cpp all of them.
#define FUZZ_TARGET(name)                                                                            \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size);                                \
  static const bool fuzz_##name##_listed = plumb::fuzz_targets().emplace(#name, fuzz_##name).second; \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size)

namespace plumb {

using FuzzTarget = int (*)(const std::uint8_t* data, std::size_t size);

// Targets by name.
inline std::map<std::string, FuzzTarget, std::less<>>& fuzz_targets() {
  static std::map<std::string, FuzzTarget, std::less<>> targets;
  return targets;
}

// An in-memory regular file that holds `bytes` during the object's lifetime.
class FileInMemory {
 public:
  explicit FileInMemory(std::string_view bytes);
  ~FileInMemory();
  FileInMemory(const FileInMemory&) = delete;
  FileInMemory& operator=(const FileInMemory&) = delete;

  std::filesystem::path path() const;

 private:
  int descriptor_;
};

// A folder of this process, emptied on construction; in memory if the system supports it.
class FuzzFolder {
 public:
  FuzzFolder();
  ~FuzzFolder();
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes a file and its parent folder; false if the name can't be a file name.
  bool write(const std::filesystem::path& name, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Discarded if the bytes are no JSON.
nlohmann::ordered_json json_of(const std::uint8_t* data, std::size_t size);

// Bytes before the first `mark`; removes them and the mark from `rest`.
inline std::string_view take_until(std::string_view& rest, char mark) {
  const std::size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

// Calls `read`, which may throw Error or CorruptImage; anything else is a finding.
template <typename Read>
void refuse_or(Read read) {
  try {
    read();
  } catch (const Error&) {
  } catch (const CorruptImage&) {
  }
}

// Ends the process if `holds` is false: also a finding.
void require(bool holds, const char* what);

}  // namespace plumb
