// JSON from files that anybody may have written.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace plumb {

// Our files have six levels. Copying or printing a value with hundreds of thousands would overflow the stack.
inline constexpr int kMostJsonLevels = 64;

// A value that is_discarded() for text that is no JSON or has more levels.
inline nlohmann::ordered_json parse_shallow_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
  bool is_deep = false;
  Json json = Json::parse(
      text, [&](int depth, Json::parse_event_t, Json&) { return !(is_deep |= depth > kMostJsonLevels); },
      false);
  return is_deep ? Json(Json::value_t::discarded) : json;
}

}  // namespace plumb
