#include "results/report/palette.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace plumb {
namespace {

constexpr std::array<std::string_view, 8> kPalette{"#0b62b0", "#c04a00", "#00795a", "#8a3d97",
                                                   "#866800", "#17819f", "#b03069", "#5b636d"};

constexpr std::pair<std::string_view, std::size_t> kPlaces[]{
    {"forward", 0},   {"parameter", 0}, {"compute", 0},   {"backward", 1},   {"gradient", 1},
    {"bandwidth", 1}, {"update", 2},    {"optimizer", 2}, {"reduce", 3},     {"statistic", 3},
    {"workspace", 4}, {"latency", 4},   {"input", 5},     {"activation", 5}, {"activation_gradient", 6}};

}  // namespace

std::size_t palette_place(std::string_view name) {
  const auto* const found = std::ranges::find(kPlaces, name, [](const auto& entry) { return entry.first; });
  return found == std::end(kPlaces) ? kPalette.size() - 1 : found->second;
}

std::string_view palette_color(std::size_t place) {
  return kPalette[place % kPalette.size()];
}

nlohmann::ordered_json palette_json() {
  nlohmann::ordered_json json;
  for (const auto& [name, place] : kPlaces) json[std::string(name)] = place;
  return json;
}

}  // namespace plumb
