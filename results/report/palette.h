// One color for each phase, memory role and limit of an instruction, in every picture and format.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace plumb {

// Place of the name's color in the palette; names without one have the last. Known ones are told apart by
// eyes that confuse red and green, too.
std::size_t palette_place(std::string_view name);
// The page's light colors (page.css: --series-0 …), for pictures on white: "#0b62b0".
std::string_view palette_color(std::size_t place);
// {"forward": 0, …}, for the page's scripts.
nlohmann::ordered_json palette_json();

}  // namespace plumb
