#include "launch/sweep/toml_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr std::size_t kLongestList = 1000;

std::string place(const std::string& file, const toml::source_region& source) {
  return fmt::format("{}:{}:{}: ", file, source.begin.line, source.begin.column);
}

// As the file could have it; a long value is cut.
std::string shown(const toml::node& node) {
  constexpr std::size_t kLongest = 60;
  if (const auto* text = node.as_string()) return fmt::format("'{}'", text->get().substr(0, kLongest));
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (node.is_boolean()) return node.ref<bool>() ? "true" : "false";
  return node.is_floating_point() ? fmt::format("{:f}", node.ref<double>()) : "a date or time";
}

std::string described(TomlRange range) {
  if (range.highest == std::numeric_limits<std::int64_t>::max())
    return fmt::format("a whole number of at least {}", range.lowest);
  return fmt::format("a whole number from {} to {}", range.lowest, range.highest);
}

// Every part of a dotted key is a table inside the one before, so a key of tens of thousands, which must be
// on one line, would overflow the stack.
void refuse_long_lines(std::string_view text, const std::string& file) {
  constexpr std::size_t kLongestLine = 10'000;
  std::size_t number = 1;
  for (const std::string& line : split(text, '\n')) {
    if (line.size() > kLongestLine)
      throw Error(ExitCode::bad_data, "{}:{}: expected at most {} letters; break the line", file, number,
                  kLongestLine);
    ++number;
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file) {
  refuse_long_lines(text, file);
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw Error(ExitCode::bad_data, "{}{}; correct the file", place(file, error.source()),
                printable(error.description()));
  }
}

void TomlTable::refuse_at(const toml::node& node, const std::string& sentence) const {
  throw Error(ExitCode::bad_data, place(file_, node.source()) + printable(sentence));
}

void TomlTable::refuse_value(const toml::node& node, std::string_view key, const std::string& wanted) const {
  refuse_at(node, fmt::format("'{}': expected {}, found {}", key, wanted, shown(node)));
}

void TomlTable::refuse(std::string_view key, const std::string& sentence) const {
  const toml::node* node = table_->get(key);
  refuse_at(node ? *node : *table_, sentence);
}

void TomlTable::refuse_others(std::initializer_list<std::string_view> keys) const {
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const auto& [key, value] : *table_)
    if (std::ranges::find(known, key.str()) == known.end())
      throw Error(ExitCode::bad_data, "{}unknown key '{}' in {}; use {}", place(file_, key.source()),
                  printable(key.str()), printable(name_), fmt::join(known, ", "));
}

void TomlTable::require(std::string_view key) const {
  if (!has(key)) refuse_at(*table_, fmt::format("{} has no '{}'; add it", name_, key));
}

std::int64_t TomlTable::integer_of(const toml::node& node, std::string_view key, TomlRange range) const {
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < range.lowest || number->get() > range.highest)
    refuse_value(node, key, described(range));
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
    refuse_value(node, key,
                 allowed.empty() ? "a text of at least one letter"
                                 : fmt::format("one of {}", fmt::join(allowed, ", ")));
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
    refuse_value(*node, key, fmt::format("a number from {:f} to {:f}", lowest, highest));
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
  if (!node->is_array()) refuse_value(*node, key, "a list of texts");
  std::vector<std::string> values;
  for (const toml::node& element : *node->as_array()) values.push_back(text_of(element, key, {}));
  return values;
}

const toml::array& TomlTable::required_array(std::string_view key) const {
  require(key);
  const toml::node& node = *table_->get(key);
  if (!node.is_array()) refuse_value(node, key, "a list of at least one value");
  if (node.as_array()->empty())
    refuse_at(node, fmt::format("'{}': expected at least one value; add one", key));
  if (node.as_array()->size() > kLongestList)
    refuse_at(node, fmt::format("'{}' has more than {} values; remove some", key, kLongestList));
  return *node.as_array();
}

template <typename Read>
auto TomlTable::distinct_values(std::string_view key, Read read) const {
  std::vector<decltype(read(std::declval<const toml::node&>()))> values;
  for (const toml::node& element : required_array(key)) {
    values.push_back(read(element));
    if (std::ranges::count(values, values.back()) > 1)
      refuse_at(element, fmt::format("'{}' has {} twice; write it once", key, shown(element)));
  }
  return values;
}

std::vector<std::int64_t> TomlTable::required_integers(std::string_view key, TomlRange range) const {
  return distinct_values(key, [&](const toml::node& element) { return integer_of(element, key, range); });
}

std::vector<std::string> TomlTable::required_texts(std::string_view key,
                                                   const std::vector<std::string>& allowed) const {
  return distinct_values(key, [&](const toml::node& element) { return text_of(element, key, allowed); });
}

std::string TomlTable::required_text(std::string_view key, const std::vector<std::string>& allowed) const {
  require(key);
  return text_of(*table_->get(key), key, allowed);
}

TomlTable TomlTable::table(std::string_view key) const {
  const std::string name = name_.empty() ? fmt::format("[{}]", key) : fmt::format("{} of {}", key, name_);
  const toml::node* node = table_->get(key);
  static const toml::table kEmpty;
  if (!node) return {kEmpty, name, file_};
  if (!node->is_table()) refuse_value(*node, key, "a table");
  return {*node->as_table(), name, file_};
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) const {
  const std::string header = fmt::format("[[{}]]", key);
  const toml::node* node = table_->get(key);
  if (!node) refuse_at(*table_, fmt::format("expected {}; add one for each model to measure", header));
  const toml::array* array = node->as_array();
  if (array == nullptr || !array->is_homogeneous(toml::node_type::table))
    refuse_at(*node,
              fmt::format("'{}': expected a list of tables; begin each one with a line {}", key, header));
  std::vector<TomlTable> tables;
  for (const toml::node& element : *array) tables.push_back({*element.as_table(), header, file_});
  return tables;
}

}  // namespace plumb
