// What all fuzz targets share: bytes as a file, and the one way in which a reader may refuse them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/error.h"
#include "bench/data/image_decoder.h"

// The entry that libFuzzer and replay.cpp call.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace plumb {

// A regular file in memory that holds `bytes`, for as long as the object lives.
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

// A folder of this process, emptied when the object is made; in memory where the system has such a place.
class FuzzFolder {
 public:
  FuzzFolder();
  ~FuzzFolder();
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes a file and the folder that it lies in; false where a name is none that a file can have.
  bool write(const std::filesystem::path& name, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Bytes before the first `mark`; `rest` loses them and the mark.
inline std::string_view take_until(std::string_view& rest, char mark) {
  const std::size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

// Calls `read`, which may throw Error, or CorruptImage; anything else is a finding.
template <typename Read>
void refuse_or(Read read) {
  try {
    read();
  } catch (const Error&) {
  } catch (const CorruptImage&) {
  }
}

// Ends the process if `holds` is false: a finding, too.
void require(bool holds, const char* what);

}  // namespace plumb
