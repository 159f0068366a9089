#include "results/record/record_text.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/paths.h"
#include "base/unique_fd.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestRecord = std::uintmax_t{1} << 28;  // a result of ten million iterations

[[noreturn]] void refuse_record(const fs::path& file, const std::string& what) {
  throw Error(ExitCode::bad_data, "file '{}' {}", printable(file.string()), what);
}

}  // namespace

std::string read_record_text(const fs::path& path, const std::string& kind) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none)
    refuse_record(path, fmt::format("can't be read ({}); allow it to be", error.message()));
  if (!fs::is_regular_file(status))
    refuse_record(path, fmt::format("is not there or is no regular file; name a {}", kind));
  if (fs::file_size(path, error) > kLargestRecord)
    refuse_record(path, fmt::format("is larger than 256 MiB, which no {0} is; name a {0}", kind));
  const UniqueFile file(std::fopen(path.c_str(), "rb"));
  if (!file) refuse_record(path, fmt::format("can't be read ({}); allow it to be", std::strerror(errno)));
  std::string text = read_rest(file.get());
  if (std::ferror(file.get())) refuse_record(path, "can't be read to its end; copy it anew");
  return text;
}

}  // namespace plumb
