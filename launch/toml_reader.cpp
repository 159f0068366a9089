#include "launch/toml_reader.h"

#include <algorithm>

#include "base/error.h"

namespace plumb {
namespace {

constexpr std::size_t kLongestList = 1000;

std::string place(const std::string& file, const toml::source_region& source) {
  return file + ", line " + std::to_string(source.begin.line) + ", column " +
         std::to_string(source.begin.column) + ": ";
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// As the file could have it; a long value is cut.
std::string shown(const toml::node& node) {
  constexpr std::size_t kLongest = 60;
  if (const auto* text = node.as_string()) return "'" + text->get().substr(0, kLongest) + "'";
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (node.is_boolean()) return node.ref<bool>() ? "true" : "false";
  return node.is_floating_point() ? std::to_string(node.ref<double>()) : "a date or time";
}

std::string described(TomlRange range) {
  if (range.highest == std::numeric_limits<std::int64_t>::max())
    return "a whole number of at least " + std::to_string(range.lowest);
  return "a whole number from " + std::to_string(range.lowest) + " to " + std::to_string(range.highest);
}

const toml::table& no_table() {
  static const toml::table empty;
  return empty;
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw Error(ExitCode::bad_data,
                place(file, error.source()) + std::string(error.description()) + "; correct the file");
  }
}

void TomlTable::refuse_at(const toml::node& node, const std::string& sentence) const {
  throw Error(ExitCode::bad_data, place(file_, node.source()) + sentence);
}

void TomlTable::refuse(std::string_view key, const std::string& sentence) const {
  const toml::node* node = table_->get(key);
  refuse_at(node ? *node : *table_, sentence);
}

void TomlTable::refuse_others(std::initializer_list<std::string_view> keys) const {
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const auto& [key, value] : *table_)
    if (std::ranges::find(known, key.str()) == known.end())
      throw Error(ExitCode::bad_data, place(file_, key.source()) + "'" + std::string(key.str()) +
                                          "' is no key of " + name_ + "; it has " + listed(known));
}

void TomlTable::require(std::string_view key) const {
  if (!has(key)) refuse_at(*table_, name_ + " has no '" + std::string(key) + "'; add it");
}

std::int64_t TomlTable::integer_of(const toml::node& node, std::string_view key, TomlRange range) const {
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < range.lowest || number->get() > range.highest)
    refuse_at(node, "'" + std::string(key) + "' has " + shown(node) + ", which is not " + described(range));
  return number->get();
}

std::string TomlTable::text_of(const toml::node& node, std::string_view key,
                               const std::vector<std::string>& allowed) const {
  const auto* text = node.as_string();
  const auto fits = [&] {
    return !text->get().empty() && text->get().find('\0') == std::string::npos &&
           (allowed.empty() || std::ranges::find(allowed, text->get()) != allowed.end());
  };
  if (text == nullptr || !fits())
    refuse_at(node, "'" + std::string(key) + "' has " + shown(node) + ", which is not " +
                        (allowed.empty() ? "a text of at least one letter" : "one of " + listed(allowed)));
  return text->get();
}

std::int64_t TomlTable::integer(std::string_view key, std::int64_t otherwise, TomlRange range) const {
  const toml::node* node = table_->get(key);
  return node ? integer_of(*node, key, range) : otherwise;
}

double TomlTable::real(std::string_view key, double otherwise, double lowest, double highest) const {
  const toml::node* node = table_->get(key);
  if (!node) return otherwise;
  const std::optional<double> number = node->is_number() ? node->value<double>() : std::nullopt;
  if (!number || !(*number >= lowest && *number <= highest))
    refuse_at(*node, "'" + std::string(key) + "' has " + shown(*node) + ", which is not a number from " +
                         std::to_string(lowest) + " to " + std::to_string(highest));
  return *number;
}

std::string TomlTable::text(std::string_view key, const std::string& otherwise) const {
  const toml::node* node = table_->get(key);
  return node ? text_of(*node, key, {}) : otherwise;
}

std::vector<std::string> TomlTable::texts(std::string_view key,
                                          const std::vector<std::string>& otherwise) const {
  const toml::node* node = table_->get(key);
  if (!node) return otherwise;
  if (!node->is_array())
    refuse_at(*node, "'" + std::string(key) + "' has " + shown(*node) + ", which is not a list of texts");
  std::vector<std::string> values;
  for (const toml::node& element : *node->as_array()) values.push_back(text_of(element, key, {}));
  return values;
}

const toml::array& TomlTable::required_array(std::string_view key) const {
  require(key);
  const toml::node& node = *table_->get(key);
  if (!node.is_array() || node.as_array()->empty())
    refuse_at(node, "'" + std::string(key) + "' has " + (node.is_array() ? "an empty list" : shown(node)) +
                        ", which is not a list of at least one value");
  if (node.as_array()->size() > kLongestList)
    refuse_at(node, "'" + std::string(key) + "' has more than " + std::to_string(kLongestList) +
                        " values; give fewer");
  return *node.as_array();
}

std::vector<std::int64_t> TomlTable::required_integers(std::string_view key, TomlRange range) const {
  std::vector<std::int64_t> values;
  for (const toml::node& element : required_array(key)) {
    values.push_back(integer_of(element, key, range));
    if (std::ranges::count(values, values.back()) > 1)
      refuse_at(element, "'" + std::string(key) + "' has " + shown(element) + " twice; give it once");
  }
  return values;
}

std::vector<std::string> TomlTable::required_texts(std::string_view key,
                                                   const std::vector<std::string>& allowed) const {
  std::vector<std::string> values;
  for (const toml::node& element : required_array(key)) {
    values.push_back(text_of(element, key, allowed));
    if (std::ranges::count(values, values.back()) > 1)
      refuse_at(element, "'" + std::string(key) + "' has " + shown(element) + " twice; give it once");
  }
  return values;
}

std::string TomlTable::required_text(std::string_view key, const std::vector<std::string>& allowed) const {
  require(key);
  return text_of(*table_->get(key), key, allowed);
}

TomlTable TomlTable::table(std::string_view key) const {
  const std::string name = name_.empty() ? "[" + std::string(key) + "]" : std::string(key) + " of " + name_;
  const toml::node* node = table_->get(key);
  if (!node) return {no_table(), name, file_};
  if (!node->is_table())
    refuse_at(*node, "'" + std::string(key) + "' has " + shown(*node) + ", which is not a table");
  return {*node->as_table(), name, file_};
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) const {
  const std::string header = "[[" + std::string(key) + "]]";
  const toml::node* node = table_->get(key);
  if (!node) refuse_at(*table_, "there is no " + header + "; add one for each model that is to be measured");
  const toml::array* array = node->as_array();
  if (array == nullptr || !array->is_homogeneous(toml::node_type::table))
    refuse_at(*node,
              "'" + std::string(key) + "' is not a list of tables; begin each one with a line " + header);
  std::vector<TomlTable> tables;
  for (const toml::node& element : *array) tables.push_back({*element.as_table(), header, file_});
  return tables;
}

}  // namespace plumb
