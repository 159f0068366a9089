// The analyzers' dictionary as a file, byte for byte as Python writes it with sorted keys.
#include <array>
#include <charconv>
#include <cmath>

#include "base/new_file.h"
#include "base/text.h"
#include "results/analysis/analyze.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

// Python's repr of a float: the shortest decimal number that reads back as the same double.
std::string python_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  const double size = std::fabs(value);
  const bool is_plain = value == 0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 64> text;
  const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
  const std::string digits(text.data(), end);
  return is_plain && digits.find('.') == std::string::npos ? digits + ".0" : digits;
}

}  // namespace

std::string dictionary_text(const Json& value) {
  if (value.is_number_float()) return python_number(value.get<double>());
  if (!value.is_object()) return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string text;
  for (const auto& [key, item] : value.items())
    append_part(text,
                Json(key).dump(-1, ' ', true, Json::error_handler_t::replace) + ": " + dictionary_text(item));
  return "{" + text + "}";
}

void check_can_create(const std::filesystem::path& path) {
  check_new_file("--json", path);
}

void write_dictionary(const std::filesystem::path& path, const Json& dictionary) {
  write_new_file("--json", path, dictionary_text(dictionary) + "\n");
}

}  // namespace plumb
