#include "base/shallow_json.h"

namespace plumb {

nlohmann::ordered_json parse_shallow_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
  bool is_deep = false;
  Json json = Json::parse(
      text, [&](int depth, Json::parse_event_t, Json&) { return !(is_deep |= depth > kMostJsonLevels); },
      false);
  return is_deep ? Json(Json::value_t::discarded) : json;
}

}  // namespace plumb
