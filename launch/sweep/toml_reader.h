// Reads tables of a TOML file strictly: an unknown, missing or mistyped key is named with file,
// line and column.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

struct TomlRange {
  std::int64_t lowest = 0, highest = std::numeric_limits<std::int64_t>::max();
};

// The whole file as a table. Throws Error(bad_data) that names `file`, line and column of a mistake in the
// syntax.
toml::table parse_toml(std::string_view text, const std::string& file);

// One table of a file, which must outlive it. Every function throws Error(bad_data) that names file, line,
// column, key, and what would be right.
class TomlTable {
 public:
  // `name`: of the table in messages: "[sweep]".
  TomlTable(const toml::table& table, std::string name, std::string file)
      : table_(&table), name_(std::move(name)), file_(std::move(file)) {}

  bool has(std::string_view key) const { return table_->contains(key); }
  const toml::table& raw() const { return *table_; }
  const std::string& name() const { return name_; }

  // `keys`: all that there may be.
  void refuse_others(std::initializer_list<std::string_view> keys) const;
  void require(std::string_view key) const;

  // The key's value, or `otherwise` without one.
  std::int64_t integer(std::string_view key, std::int64_t otherwise, TomlRange range) const;
  double real(std::string_view key, double otherwise, double lowest, double highest) const;
  std::string text(std::string_view key, const std::string& otherwise) const;
  std::vector<std::string> texts(std::string_view key, const std::vector<std::string>& otherwise) const;

  // Lists that must be there, with at least one value and none twice; `allowed` empty: any text.
  std::vector<std::int64_t> required_integers(std::string_view key, TomlRange range) const;
  std::vector<std::string> required_texts(std::string_view key,
                                          const std::vector<std::string>& allowed) const;
  std::string required_text(std::string_view key, const std::vector<std::string>& allowed) const;

  // Tables below; an empty one for a missing key.
  TomlTable table(std::string_view key) const;
  std::vector<TomlTable> tables(std::string_view key) const;

  // "FILE, line L, column C: SENTENCE", at a key's value, or at the table without such a key.
  [[noreturn]] void refuse(std::string_view key, const std::string& sentence) const;

 private:
  [[noreturn]] void refuse_at(const toml::node& node, const std::string& sentence) const;
  [[noreturn]] void refuse_value(const toml::node& node, std::string_view key,
                                 const std::string& wanted) const;
  template <typename Read>
  auto distinct_values(std::string_view key, Read read) const;
  std::string text_of(const toml::node& node, std::string_view key,
                      const std::vector<std::string>& allowed) const;
  std::int64_t integer_of(const toml::node& node, std::string_view key, TomlRange range) const;
  const toml::array& required_array(std::string_view key) const;

  const toml::table* table_;
  std::string name_, file_;
};

}  // namespace plumb
