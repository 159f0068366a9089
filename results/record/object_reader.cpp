#include "results/record/object_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/paths.h"
#include "base/ranges.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

bool is_number(const Json& value) {
  return value.is_number() || value.is_null();
}

double number_of(const Json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

}  // namespace

ObjectReader::ObjectReader(const Json& json, const std::string& origin, const std::string& prefix,
                           const char* schema, RenamedKeys renamed)
    : json_(json), origin_(origin), schema_(schema ? schema : kResultSchema), renamed_(renamed) {
  if (!json.is_object()) fail(prefix.empty() ? "the file" : prefix, "expected an object");
  prefix_ = prefix;
}

std::string ObjectReader::spelled(const std::string& key) const {
  const auto found = std::ranges::find(renamed_, key, &RenamedKey::now);
  return found == renamed_.end() ? key : std::string(found->before);
}

std::int64_t ObjectReader::integer_of(const Json& value, const std::string& key, std::int64_t lowest,
                                      std::int64_t highest) const {
  const bool too_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(highest);
  if (too_large || value.get<std::int64_t>() < lowest || value.get<std::int64_t>() > highest)
    fail(key, fmt::format("expected {1} to {2}, found {0}", value.dump(), lowest, highest));
  return value.get<std::int64_t>();
}

std::int64_t ObjectReader::integer(const std::string& key, std::int64_t lowest, std::int64_t highest) const {
  return integer_of(member(key, &Json::is_number_integer, "a whole number"), key, lowest, highest);
}

double ObjectReader::number(const char* key) const {
  if (!is_number(any(key))) fail(key, "expected a number");
  return number_of(any(key));
}

std::vector<double> ObjectReader::numbers(const char* key) const {
  return mapped(list(key), [&](const Json& value) {
    if (!is_number(value)) fail(key, "expected numbers only");
    return number_of(value);
  });
}

std::vector<std::int64_t> ObjectReader::integers(const char* key, std::int64_t lowest,
                                                 std::int64_t highest) const {
  return mapped(list(key), [&](const Json& value) {
    if (!value.is_number_integer()) fail(key, "expected whole numbers only");
    return integer_of(value, key, lowest, highest);
  });
}

std::vector<std::string> ObjectReader::texts(const char* key) const {
  return mapped(list(key), [&](const Json& value) {
    if (!value.is_string()) fail(key, "expected texts only");
    return value.get<std::string>();
  });
}

std::vector<bool> ObjectReader::flags(const char* key) const {
  return mapped(list(key), [&](const Json& value) {
    if (!value.is_boolean()) fail(key, "expected values of another type");
    return value.get<bool>();
  });
}

void ObjectReader::refuse_others(const std::vector<std::string>& keys) const {
  for (const auto& [key, value] : json_.items())
    if (std::ranges::find(keys, key) == keys.end())
      fail(printable(key), fmt::format("unknown key; expected one of {}", fmt::join(keys, ", ")));
}

void ObjectReader::fail(const std::string& key, const std::string& what) const {
  throw Error(ExitCode::bad_data, "{}: '{}': {}; use a {} of {}", origin_, name_of(key), what,
              schema_ == kResultSchema ? "result" : "file", schema_);
}

const Json& ObjectReader::member(const std::string& key, bool (Json::*has_type)() const noexcept,
                                 const char* type) const {
  const auto found = json_.find(spelled(key));
  if (found == json_.end()) fail(key, "it is missing");
  if (has_type && !((*found).*has_type)()) fail(key, std::string("expected ") + type);
  return *found;
}

}  // namespace plumb
