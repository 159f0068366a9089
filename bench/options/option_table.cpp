#include "bench/options/option_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace plumb {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string key_of(const std::string& name) {
  std::string key = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

template <typename Number>
std::string print(Number number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

template <typename Number>
std::string describe_range(const Range<Number>& range) {
  const bool has_lowest = std::is_unsigned_v<Number> || range.lowest != std::numeric_limits<Number>::lowest();
  const bool has_highest = std::is_unsigned_v<Number> || range.highest != std::numeric_limits<Number>::max();
  std::string text = std::is_floating_point_v<Number> ? "a number" : "a whole number";
  if (has_lowest && has_highest && !range.above_lowest && !range.below_highest)
    return text + " from " + print(range.lowest) + " to " + print(range.highest);
  if (has_lowest) text += (range.above_lowest ? " above " : " of at least ") + print(range.lowest);
  if (has_lowest && has_highest) text += " and";
  if (has_highest) text += (range.below_highest ? " below " : " of at most ") + print(range.highest);
  return text;
}

template <typename Number>
Number parse_number(const std::string& option, const std::string& text, const Range<Number>& range) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(value);
  good = good && (range.above_lowest ? value > range.lowest : value >= range.lowest) &&
         (range.below_highest ? value < range.highest : value <= range.highest);
  if (!good) throw Error(ExitCode::usage, "option {}: '{}' is not {}", option, text, describe_range(range));
  return value;
}

template <typename Target, typename Parse>
OptionSpec number_option(const std::string& names, const std::string& value_name, Target& target,
                         const std::string& help, Parse parse) {
  OptionSpec spec = make_option(names, value_name, help);
  spec.set = [option = spec.names.front(), &target, parse](const std::string& text) {
    target = parse(option, text);
  };
  if constexpr (requires { target.has_value(); }) {
    spec.get = [&target] { return target ? nlohmann::ordered_json(*target) : nlohmann::ordered_json(); };
  } else {
    spec.get = [&target] { return nlohmann::ordered_json(target); };
    spec.default_text = print(target);
  }
  return spec;
}

Range<std::int64_t> widen(const Range<int>& range) {
  return {range.lowest, range.highest, range.above_lowest, range.below_highest};
}

}  // namespace

std::int64_t parse_integer(const std::string& option, const std::string& text, Range<std::int64_t> range) {
  return parse_number(option, text, range);
}

std::uint64_t parse_unsigned(const std::string& option, const std::string& text, Range<std::uint64_t> range) {
  return parse_number(option, text, range);
}

double parse_real(const std::string& option, const std::string& text, Range<double> range) {
  return parse_number(option, text, range);
}

double parse_percent(const std::string& option, const std::string& text, Range<double> range) {
  const bool percent = text.ends_with('%');
  try {
    const double number = parse_real(option, percent ? text.substr(0, text.size() - 1) : text, {});
    const double share = percent ? number / 100 : number;
    return parse_real(option, print(share), range);
  } catch (const Error&) {
    throw Error(ExitCode::usage, "option {}: '{}' is no share {}; write it as 2% or 0.02", option, text,
                describe_range(range).substr(std::string("a number ").size()));
  }
}

std::size_t parse_choice(const std::string& option, const std::string& text,
                         const std::vector<std::string>& allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), text);
  if (found != allowed.end()) return static_cast<std::size_t>(found - allowed.begin());
  std::string list;
  for (const std::string& name : allowed) list += (list.empty() ? "" : ", ") + name;
  throw Error(ExitCode::usage, "option {}: '{}' is not one of {}", option, text, list);
}

OptionSpec OptionSpec::with_default(std::string text) && {
  default_text = std::move(text);
  return std::move(*this);
}

OptionSpec OptionSpec::with_key(std::string key) && {
  config_key = std::move(key);
  return std::move(*this);
}

OptionSpec OptionSpec::in_set(std::string set_name) && {
  exclusive_set = std::move(set_name);
  return std::move(*this);
}

OptionSpec OptionSpec::as_required() && {
  required = true;
  return std::move(*this);
}

OptionSpec make_option(const std::string& names, const std::string& value_name, const std::string& help) {
  OptionSpec spec;
  spec.names = split(names, ',');
  spec.value_name = value_name;
  spec.help = help;
  spec.config_key = key_of(spec.names.front());
  return spec;
}

OptionSpec integer_option(const std::string& names, const std::string& value_name, std::int64_t& target,
                          Range<std::int64_t> range, const std::string& help) {
  return number_option(names, value_name, target, help,
                       [range](const std::string& option, const std::string& text) {
                         return parse_integer(option, text, range);
                       });
}

OptionSpec integer_option(const std::string& names, const std::string& value_name, int& target,
                          Range<int> range, const std::string& help) {
  return number_option(names, value_name, target, help,
                       [range](const std::string& option, const std::string& text) {
                         return static_cast<int>(parse_integer(option, text, widen(range)));
                       });
}

OptionSpec integer_option(const std::string& names, const std::string& value_name, std::uint64_t& target,
                          Range<std::uint64_t> range, const std::string& help) {
  return number_option(names, value_name, target, help,
                       [range](const std::string& option, const std::string& text) {
                         return parse_unsigned(option, text, range);
                       });
}

OptionSpec integer_option(const std::string& names, const std::string& value_name,
                          std::optional<std::int64_t>& target, Range<std::int64_t> range,
                          const std::string& help) {
  return number_option(names, value_name, target, help,
                       [range](const std::string& option, const std::string& text) {
                         return parse_integer(option, text, range);
                       });
}

OptionSpec integer_option(const std::string& names, const std::string& value_name, std::optional<int>& target,
                          Range<int> range, const std::string& help) {
  return number_option(names, value_name, target, help,
                       [range](const std::string& option, const std::string& text) {
                         return static_cast<int>(parse_integer(option, text, widen(range)));
                       });
}

OptionSpec real_option(const std::string& names, const std::string& value_name, double& target,
                       Range<double> range, const std::string& help) {
  return number_option(names, value_name, target, help,
                       [range](const std::string& option, const std::string& text) {
                         return parse_real(option, text, range);
                       });
}

OptionSpec real_option(const std::string& names, const std::string& value_name, std::optional<double>& target,
                       Range<double> range, const std::string& help) {
  return number_option(names, value_name, target, help,
                       [range](const std::string& option, const std::string& text) {
                         return parse_real(option, text, range);
                       });
}

OptionSpec percent_option(const std::string& names, double& target, Range<double> range,
                          const std::string& help) {
  OptionSpec spec =
      number_option(names, "P%", target, help, [range](const std::string& option, const std::string& text) {
        return parse_percent(option, text, range);
      });
  spec.default_text = print(std::round(1e8 * target) / 1e6) + "%";  // 7, not 7.000000000000001
  return spec;
}

OptionSpec text_option(const std::string& names, const std::string& value_name, std::string& target,
                       const std::string& help) {
  OptionSpec spec = make_option(names, value_name, help);
  spec.set = [&target](const std::string& text) { target = text; };
  spec.get = [&target] { return nlohmann::ordered_json(target); };
  spec.default_text = target;
  return spec;
}

OptionSpec choice_option(const std::string& names, std::string& target,
                         const std::vector<std::string>& allowed, const std::string& help) {
  std::string joined;
  for (const std::string& name : allowed) joined += (joined.empty() ? "" : "|") + name;
  OptionSpec spec = text_option(names, joined, target, help);
  spec.set = [option = spec.names.front(), allowed, &target](const std::string& text) {
    target = allowed[parse_choice(option, text, allowed)];
  };
  return spec;
}

OptionSpec flag_option(const std::string& names, bool& target, bool value, const std::string& help) {
  OptionSpec spec = make_option(names, "", help);
  spec.set = [&target, value](const std::string&) { target = value; };
  spec.get = [&target] { return nlohmann::ordered_json(target); };
  return spec;
}

OptionSpec stop_option(const std::string& names, bool& target, const std::string& help) {
  OptionSpec spec = flag_option(names, target, true, help);
  spec.config_key.clear();
  spec.ends_parsing = true;
  return spec;
}

OptionSpec positional(const std::string& name, std::string& target, const std::string& help) {
  OptionSpec spec = text_option(name, "", target, help);
  std::transform(spec.config_key.begin(), spec.config_key.end(), spec.config_key.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return spec;
}

OptionSpec positional(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  OptionSpec spec = make_option(name, "", help);
  spec.config_key.clear();
  spec.repeated = true;
  spec.set = [&target](const std::string& text) { target.push_back(text); };
  spec.get = [&target] { return nlohmann::ordered_json(target); };
  return spec;
}

nlohmann::ordered_json config_json(const OptionTable& table) {
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  for (const OptionGroup& group : table.groups)
    for (const OptionSpec& spec : group.options)
      if (!spec.config_key.empty()) config[spec.config_key] = spec.get();
  return config;
}

}  // namespace plumb
