// JSON from files that anybody may have written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace plumb {

// Our files have six levels. Copying or printing a value with hundreds of thousands would overflow the stack.
inline constexpr int kMostJsonLevels = 64;
// Objects keep their keys in order and look each one up from the beginning.
inline constexpr int kMostJsonKeys = 2000;

// Returns a value that is_discarded() if the text isn't JSON, has more levels, or an object has more keys.
nlohmann::ordered_json parse_shallow_json(std::string_view text);

}  // namespace plumb
