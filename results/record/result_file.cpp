// result.json as a file.
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/whole_file.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw Error(ExitCode::bad_data, "file '{}': {}", printable(file.string()), what);
}

// N of "plumbline.result/N"; 0 for anything else.
int version_of(std::string_view schema) {
  if (!schema.starts_with(kResultSchemaPrefix) || schema.size() > kResultSchemaPrefix.size() + 8) return 0;
  int version = 0;
  for (const char digit : schema.substr(kResultSchemaPrefix.size())) {
    if (digit < '0' || digit > '9') return 0;
    version = 10 * version + (digit - '0');
  }
  return version;
}

}  // namespace

ResultFile read_result_file(const fs::path& path) {
  const std::string text = read_whole_file(path, {.remedy = std::string("pass a ") + kResultFile});
  const Json json = parse_shallow_json(text);
  if (!json.is_object())
    refuse(path, "expected a result.json, and it is not a JSON object; run the bench again");
  if (const auto schema = json.find("schema"); schema != json.end() && schema->is_string())
    if (const std::string name = *schema; version_of(name) > version_of(kResultSchema))
      refuse(path, fmt::format("its schema {} is newer than {}, which this plumbline reads; update plumbline",
                               name, kResultSchema));
  return {run_record_from_json(json, fmt::format("file '{}'", printable(path.string()))), fnv1a(text)};
}

}  // namespace plumb
