#include "base/shallow_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/paths.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

// Whether brackets and colons outside of texts keep to the limits. (A callback of the parser could count
// them, but with one the parser looks through all members of a value whenever one of them ends.)
bool keeps_limits(std::string_view text) {
  std::vector<int> keys;  // of the values that are open
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      keys.push_back(0);
    } else if ((c == '}' || c == ']') && !keys.empty()) {
      keys.pop_back();
    } else if (c == ':' && !keys.empty()) {
      ++keys.back();
    } else {
      continue;
    }
    if (std::ssize(keys) > kMostJsonLevels || (!keys.empty() && keys.back() > kMostJsonKeys)) return false;
  }
  return true;
}

bool is_printable(const std::string& text) {
  return printable(text) == text;
}

void make_printable(Json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (!is_printable(text)) text = printable(text);
  }
  if (!value.is_structured()) return;
  for (Json& member : value) make_printable(member);
  if (!value.is_object()) return;
  const auto& members = value.get_ref<const Json::object_t&>();
  if (std::ranges::all_of(members, [](const auto& member) { return is_printable(member.first); })) return;
  Json renamed = Json::object();
  for (auto& [key, member] : value.items()) renamed[printable(key)] = std::move(member);
  value = std::move(renamed);
}

}  // namespace

Json parse_shallow_json(std::string_view text) {
  if (!keeps_limits(text)) return Json(Json::value_t::discarded);
  Json json = Json::parse(text, nullptr, false);
  make_printable(json);
  return json;
}

}  // namespace plumb
