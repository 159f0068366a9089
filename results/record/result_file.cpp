// result.json as a file.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/unique_fd.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFile = std::uintmax_t{1} << 28;  // 256 MiB: a run of ten million iterations

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw Error(ExitCode::bad_data, "file '{}' {}", printable(file.string()), what);
}

std::string read_text(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none)
    refuse(path, fmt::format("can't be read ({}); allow it to be", error.message()));
  if (!fs::is_regular_file(status)) refuse(path, "is not there or is no regular file; name a result.json");
  if (fs::file_size(path, error) > kLargestFile)
    refuse(path, "is larger than 256 MiB, which no result is; name a result.json");
  const UniqueFile file(std::fopen(path.c_str(), "rb"));
  if (!file) refuse(path, fmt::format("can't be read ({}); allow it to be", std::strerror(errno)));
  std::string text = read_rest(file.get());
  if (std::ferror(file.get())) refuse(path, "can't be read to its end; copy it anew");
  return text;
}

// N of "plumbline.result/N"; 0 for anything else.
int version_of(std::string_view schema) {
  constexpr std::string_view kPrefix = "plumbline.result/";
  if (!schema.starts_with(kPrefix) || schema.size() > kPrefix.size() + 8) return 0;
  int version = 0;
  for (const char digit : schema.substr(kPrefix.size())) {
    if (digit < '0' || digit > '9') return 0;
    version = 10 * version + (digit - '0');
  }
  return version;
}

}  // namespace

ResultFile read_result_file(const fs::path& path) {
  const std::string text = read_text(path);
  const Json json = parse_shallow_json(text);
  if (!json.is_object()) refuse(path, "is no result.json: it holds no JSON object; run the bench again");
  if (const auto schema = json.find("schema"); schema != json.end() && schema->is_string())
    if (const std::string name = *schema; version_of(name) > version_of(kResultSchema))
      refuse(path,
             fmt::format(
                 "has the schema {}, newer than {}, the newest that this plumbline reads; update plumbline",
                 name, kResultSchema));
  return {run_record_from_json(json, fmt::format("file '{}'", printable(path.string()))), fnv1a(text)};
}

}  // namespace plumb
