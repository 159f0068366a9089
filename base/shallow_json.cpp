#include "base/shallow_json.h"

#include <nlohmann/json.hpp>
#include <vector>

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

}  // namespace

Json parse_shallow_json(std::string_view text) {
  if (!keeps_limits(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace plumb
