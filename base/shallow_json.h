// JSON from files that anybody may have written.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace plumb {

// Files of ours have six levels. Of what has hundreds of thousands, a copy or a print would overflow the
// stack.
inline constexpr int kMostJsonLevels = 64;

// A value that is_discarded() for text that is no JSON or has more levels.
nlohmann::ordered_json parse_shallow_json(std::string_view text);

}  // namespace plumb
