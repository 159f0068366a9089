// The analyzers' dictionary as a file, byte for byte as Python writes it with sorted keys.
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "models/error.h"
#include "results/analyze.h"

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

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw Error(ExitCode::cannot_create, "option --json: '" + path.string() + "' " + why);
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string dictionary_text(const Json& value) {
  if (value.is_number_float()) return python_number(value.get<double>());
  if (!value.is_object()) return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string text;
  for (const auto& [key, item] : value.items())
    text += (text.empty() ? "" : ", ") + Json(key).dump(-1, ' ', true, Json::error_handler_t::replace) +
            ": " + dictionary_text(item);
  return "{" + text + "}";
}

void check_can_create(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
    refuse(path, "exists already and is not replaced; give another name");
  if (!std::filesystem::is_directory(folder, error))
    refuse(path, "can't be created, its folder is not there; create the folder or give another name");
}

void write_dictionary(const std::filesystem::path& path, const Json& dictionary) {
  check_can_create(path);
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wbx"));
  if (!file) refuse(path, std::string("can't be created: ") + std::strerror(errno) + "; give another name");
  const std::string text = dictionary_text(dictionary) + "\n";
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!is_written || std::fflush(file.get()) != 0)
    throw Error(ExitCode::io_error, "option --json: '" + path.string() + "' can't be written: " +
                                        std::strerror(errno) + "; make room and try again");
}

}  // namespace plumb
