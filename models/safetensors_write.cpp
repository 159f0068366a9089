#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "models/error.h"
#include "models/weights.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

[[noreturn]] void fail(ExitCode code, const fs::path& path, const std::string& what, int error_number) {
  throw Error(code, path.string() + ": " + what + " (" + std::strerror(error_number) +
                        "); choose another file or make room");
}

// A file that has no final name yet; what is left of it goes when this does.
class PartialFile {
 public:
  explicit PartialFile(const fs::path& path)
      : path_(path), partial_(path.string() + ".part." + std::to_string(::getpid())) {
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(ExitCode::cannot_create, path_, "it can't be created", errno);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    ::unlink(partial_.c_str());
  }

  void write(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(ExitCode::io_error, path_, "writing failed", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  // Gives the file its name, without replacing one that has come into being meanwhile.
  void publish() {
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

 private:
  fs::path path_;
  std::string partial_;
  int descriptor_ = -1;
};

template <typename Element>
Bytes bytes_of(const std::string& name, const std::vector<std::int64_t>& dims,
               const std::vector<Element>& values) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) elements *= dim;
  if (elements != static_cast<std::int64_t>(values.size())) {
    throw Error(ExitCode::internal, "tensor " + shown_name(name) + " has " + std::to_string(values.size()) +
                                        " values where its shape wants " + std::to_string(elements));
  }
  return std::as_bytes(std::span(values));
}

// Length, and JSON padded with spaces so that the data after it starts at a multiple of 8 bytes.
std::string framed(const nlohmann::ordered_json& header) {
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t bytes = text.size();
  std::string frame(sizeof(bytes), '\0');
  std::memcpy(frame.data(), &bytes, sizeof(bytes));
  return frame + text;
}

}  // namespace

void write_safetensors(const fs::path& path, const TensorFile& file) {
  std::error_code code;
  if (fs::exists(fs::symlink_status(path, code))) {
    throw Error(ExitCode::cannot_create, path.string() + " exists already; choose another file or remove it");
  }
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::vector<Bytes> data;
  std::size_t end = 0;
  const auto add = [&](const std::string& name, const char* dtype, const std::vector<std::int64_t>& dims,
                       Bytes bytes) {
    header[name] = {{"dtype", dtype}, {"shape", dims}, {"data_offsets", {end, end + bytes.size()}}};
    end += bytes.size();
    data.push_back(bytes);
  };
  // The wider type first keeps every tensor aligned.
  for (const auto& [name, tensor] : file.integers) {
    add(name, "I64", tensor.first, bytes_of(name, tensor.first, tensor.second));
  }
  for (const auto& [name, tensor] : file.floats) {
    add(name, "F32", tensor.dims, bytes_of(name, tensor.dims, tensor.values));
  }

  PartialFile out(path);
  const std::string frame = framed(header);
  out.write(std::as_bytes(std::span(frame)));
  for (const Bytes bytes : data) out.write(bytes);
  out.publish();
}

}  // namespace plumb
