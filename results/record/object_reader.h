// Reads the members of one JSON object of a record (result.json, links.json, …) and names the key that is
// missing or of another type.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

using Json = nlohmann::ordered_json;

// A key of a record, and its name in files of an earlier version.
struct RenamedKey {
  std::string_view now, before;
};
using RenamedKeys = std::span<const RenamedKey>;

// Every method throws Error(bad_data) that names `origin` (the file), the key behind `prefix`, and what is
// wrong with it. What is read must outlive the reader.
class ObjectReader {
 public:
  // `schema`: what the file should be, for messages; null: kResultSchema. `renamed`: keys that
  // the file spells otherwise.
  ObjectReader(const Json& json, const std::string& origin, const std::string& prefix = "",
               const char* schema = nullptr, RenamedKeys renamed = {});

  std::string text(const char* key) const { return member(key, &Json::is_string, "a text"); }
  std::int64_t integer(const std::string& key, std::int64_t lowest,
                       std::int64_t highest = std::numeric_limits<std::int64_t>::max()) const;
  // null, which is what JSON has for NaN and infinities, reads as NaN.
  double number(const char* key) const;
  std::vector<double> numbers(const char* key) const;
  std::vector<std::int64_t> integers(const char* key, std::int64_t lowest, std::int64_t highest) const;
  std::vector<std::string> texts(const char* key) const;
  std::vector<bool> flags(const char* key) const;
  const Json& object(const char* key) const { return member(key, &Json::is_object, "an object"); }
  // Reads the object `key`; the names of its members begin with this one's.
  ObjectReader inside(const char* key) const {
    return {object(key), origin_, name_of(key), schema_, renamed_};
  }
  // Reads the objects in the list `key`; their members' names begin with "key[0]".
  void for_each(const char* key, const auto& read) const {
    std::size_t index = 0;
    for (const Json& entry : list(key))
      read(ObjectReader(entry, origin_, name_of(key) + "[" + std::to_string(index++) + "]", schema_,
                        renamed_));
  }
  const Json& list(const char* key) const { return member(key, &Json::is_array, "a list"); }
  const Json& any(const char* key) const { return member(key, nullptr, ""); }
  bool has(const char* key) const { return json_.contains(spelled(key)); }

  // `keys`: all that the object may have.
  void refuse_others(const std::vector<std::string>& keys) const;

  const std::string& origin() const { return origin_; }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  std::int64_t integer_of(const Json& value, const std::string& key, std::int64_t lowest,
                          std::int64_t highest) const;
  std::string spelled(const std::string& key) const;  // as the file has it
  std::string name_of(const std::string& key) const {
    return (prefix_.empty() ? "" : prefix_ + ".") + spelled(key);
  }
  const Json& member(const std::string& key, bool (Json::*has_type)() const noexcept, const char* type) const;

  const Json& json_;
  const std::string& origin_;
  std::string prefix_;
  const char* schema_;
  RenamedKeys renamed_;
};

}  // namespace plumb
