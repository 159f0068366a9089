// Records of files as one list of members. A record has
//
//   static void fields(auto& self, auto&& each) { each("seconds", self.seconds, Field{"mean per step"}); … }
//
// and by it is written, read and described as a JSON Schema (https://json-schema.org/draft/2020-12/schema).
// Its check(reader) const, if any, refuses what single members can't say. With a kMayLackKeys a file may lack
// any key of it: the member keeps its start value. A struct with kHasNoOtherKeys refuses all other keys.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "results/record/object_reader.h"

namespace plumb {

struct Field {
  const char* about = "";  // meaning and unit
  // The range of a whole number.
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  // Whether this record's key is written. Without it: if the member isn't a std::nullopt. A file may lack the
  // key where it is given, and where the member is optional.
  std::optional<bool> written = {};
  bool null_if_nothing = false;  // of an optional member: its key is always there; so for "" and 0
  bool finite = false;           // a number that may not be null, which stands for NaN and infinities
};

namespace fields {

template <typename T>
concept Record = requires(T& record) {
  T::fields(record, [](const char*, auto&, const Field& = {}) {});
};

template <typename T>
bool may_lack(const Field& field, bool is_optional) {
  constexpr bool kAny = requires {
    T::kMayLackKeys;
  };
  return kAny || field.written || (is_optional && !field.null_if_nothing);
}

template <typename T>
struct ItemOf {};
template <typename T>
struct ItemOf<std::optional<T>> : std::type_identity<T> {};
template <typename T>
struct ItemOf<std::vector<T>> : std::type_identity<T> {};
template <typename T>
struct ItemOf<std::map<std::string, T>> : std::type_identity<T> {};
template <typename T>
using Item = ItemOf<T>::type;
template <typename T>
concept Optional = std::same_as<T, std::optional<Item<T>>>;
template <typename T>
concept List = std::same_as<T, std::vector<Item<T>>>;
template <typename T>
concept Map = std::same_as<T, std::map<std::string, Item<T>>>;

template <typename T>
Json written(const T& value);

template <typename T>
Json written(const T& value) {
  Json json;
  if constexpr (Record<T>) {
    json = Json::object();
    T::fields(value, [&]<typename M>(const char* key, const M& member, const Field& field = {}) {
      bool is_written = true;
      if constexpr (Optional<M>) is_written = member || field.null_if_nothing;
      bool is_nothing = false;
      if constexpr (std::same_as<M, std::string> || std::same_as<M, int> || std::same_as<M, std::int64_t>)
        is_nothing = field.null_if_nothing && member == M();
      if (field.written.value_or(is_written)) json[key] = is_nothing ? Json(nullptr) : written(member);
    });
  } else if constexpr (Optional<T>) {
    if (value) json = written(*value);
  } else if constexpr (List<T>) {
    json = Json::array();
    for (const auto& item : value) json.push_back(written(item));
  } else if constexpr (Map<T>) {
    json = Json::object();
    for (const auto& [key, item] : value) json[key] = written(item);
  } else if constexpr (std::same_as<T, Json>) {
    json = value;
  } else if constexpr (requires { to_json(value); }) {
    json = to_json(value);
  } else {
    json = value;
  }
  return json;
}

template <typename T>
void read(const ObjectReader& reader, const char* key, T& value, const Field& field);

template <Record T>
void read_all(const ObjectReader& reader, T& record) {
  if constexpr (requires { T::kHasNoOtherKeys; }) {
    std::vector<std::string> keys;
    T::fields(record, [&](const char* key, auto&, const Field& = {}) { keys.emplace_back(key); });
    reader.refuse_others(keys);
  }
  T::fields(record, [&]<typename M>(const char* key, M& member, const Field& field = {}) {
    if (!may_lack<T>(field, Optional<M>) || reader.has(key)) read(reader, key, member, field);
  });
  if constexpr (requires { record.check(reader); }) record.check(reader);
}

template <typename T>
void read(const ObjectReader& reader, const char* key, T& value, const Field& field) {
  if constexpr (Optional<T>) {
    if (!field.null_if_nothing || !reader.any(key).is_null()) read(reader, key, value.emplace(), field);
  } else if constexpr (std::same_as<T, std::string>) {
    value = reader.text(key);
  } else if constexpr (std::same_as<T, bool>) {
    if (!reader.any(key).is_boolean()) reader.fail(key, "expected true or false");
    value = reader.any(key).template get<bool>();
  } else if constexpr (std::integral<T>) {
    const auto highest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    value = static_cast<T>(reader.integer(key, field.lowest,
                                          highest < static_cast<std::uint64_t>(field.highest)
                                              ? static_cast<std::int64_t>(highest)
                                              : field.highest));
  } else if constexpr (std::same_as<T, double>) {
    value = reader.number(key);
    if (field.finite && !std::isfinite(value)) reader.fail(key, "expected a finite number");
  } else if constexpr (std::same_as<T, std::vector<double>>) {
    value = reader.numbers(key);
  } else if constexpr (std::same_as<T, std::vector<std::int64_t>>) {
    value = reader.integers(key, field.lowest, field.highest);
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    value = reader.texts(key);
  } else if constexpr (std::same_as<T, std::vector<bool>>) {
    value = reader.flags(key);
  } else if constexpr (List<T>) {
    reader.for_each(key, [&](const ObjectReader& entry) { read_all(entry, value.emplace_back()); });
  } else if constexpr (Map<T>) {
    const ObjectReader members = reader.inside(key);
    for (const auto& [name, ignored] : reader.object(key).items())
      read(members, name.c_str(), value[name], field);
  } else if constexpr (Record<T>) {
    read_all(reader.inside(key), value);
  } else if constexpr (std::same_as<T, Json>) {
    value = reader.object(key);
  } else {
    static_assert(sizeof(T) == 0, "a member that can't be read");
  }
}

template <typename T>
Json schema(const Field& field = {});

template <Record T>
Json record_schema() {
  Json properties = Json::object(), required = Json::array();
  T record{};
  T::fields(record, [&]<typename M>(const char* key, const M&, const Field& field = {}) {
    properties[key] = schema<M>(field);
    if (!may_lack<T>(field, Optional<M>)) required.push_back(key);
  });
  return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}

template <typename T>
Json schema_of_type(const Field& field) {
  if constexpr (Optional<T>) {
    return schema_of_type<Item<T>>(field);
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::integral<T>) {
    Json json{{"type", "integer"}};
    if (field.lowest != Field{}.lowest) json["minimum"] = field.lowest;
    if (field.highest != Field{}.highest) json["maximum"] = field.highest;
    return json;
  } else if constexpr (std::same_as<T, double>) {
    if (field.finite) return {{"type", "number"}};
    return {{"type", {"number", "null"}}};
  } else if constexpr (List<T>) {
    return {{"type", "array"}, {"items", schema<Item<T>>()}};
  } else if constexpr (Map<T>) {
    Field of_item = field;
    of_item.about = "", of_item.null_if_nothing = Optional<Item<T>>;
    return {{"type", "object"}, {"additionalProperties", schema<Item<T>>(of_item)}};
  } else if constexpr (Record<T>) {
    return record_schema<T>();
  } else if constexpr (requires { T::schema(); }) {
    return T::schema();
  } else {
    static_assert(std::same_as<T, Json>, "a member of unknown type");
    return {{"type", "object"}};
  }
}

template <typename T>
Json schema(const Field& field) {
  Json json = schema_of_type<T>(field);
  if (field.null_if_nothing && !json["type"].is_array()) json["type"] = Json::array({json["type"], "null"});
  if (*field.about) json["description"] = field.about;
  return json;
}

}  // namespace fields

// A member that may be missing or of another type.
template <typename T>
T value_or(const Json& object, const char* key, const T& otherwise = {}) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) return otherwise;
  if constexpr (std::same_as<T, std::string>) return found->is_string() ? found->get<T>() : otherwise;
  if constexpr (std::integral<T>) return found->is_number_integer() ? found->get<T>() : otherwise;
  if constexpr (std::floating_point<T>) return found->is_number() ? found->get<T>() : otherwise;
}

// A file or output: the name of its schema, then the record's members.
template <fields::Record T>
Json document_json(const char* schema, const T& record) {
  Json json{{"schema", schema}};
  json.update(fields::written(record));
  return json;
}

// Throws Error(bad_data) that names `origin`, the key and what is wrong with it.
template <fields::Record T>
T record_of(const Json& json, const std::string& origin, const char* schema = nullptr) {
  T record;
  fields::read_all(ObjectReader(json, origin, "", schema), record);
  return record;
}

// The JSON Schema of a document without a "schema" of its own, such as a list.
template <typename T>
Json json_schema_of(const char* name, const char* about) {
  Json json{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", name}, {"description", about}};
  json.update(fields::schema<T>());
  return json;
}

// The JSON Schema of a file whose "schema" is `name`.
template <fields::Record T>
Json json_schema(const char* name, const char* about) {
  Json json = json_schema_of<T>(name, about);
  if (!json["properties"].contains("schema")) json["required"].push_back("schema");
  json["properties"]["schema"] = {{"const", name}};
  return json;
}

// A kind of document, by the name that its "schema" has, with what makes its JSON Schema.
struct Document {
  const char *name, *about;
  Json (*make_schema)(const char* name, const char* about);
};
template <fields::Record T>
constexpr Document document_of(const char* name, const char* about) {
  return {name, about, json_schema<T>};
}

}  // namespace plumb
