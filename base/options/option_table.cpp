#include "base/options/option_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace plumb {
namespace {

std::string key_of(const std::string& name) {
  return replaced(name.substr(std::min(name.find_first_not_of('-'), name.size())), '-', "_");
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

// "2%" or "0.02": the share, 0.02.
double parse_percent(const std::string& option, const std::string& text, const Range<double>& range) {
  const bool percent = text.ends_with('%');
  try {
    const double number = parse_number<double>(option, percent ? text.substr(0, text.size() - 1) : text, {});
    const double share = percent ? number / 100 : number;
    return parse_number(option, print(share), range);
  } catch (const Error&) {
    throw Error(ExitCode::usage, "{} {}: expected a share {}; pass it as 2% or 0.02", option, text,
                describe_range(range).substr(std::string("a number ").size()));
  }
}

}  // namespace

template <typename Number>
Number parse_number(const std::string& option, const std::string& text, const Range<Number>& range) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(value);
  good = good && (range.above_lowest ? value > range.lowest : value >= range.lowest) &&
         (range.below_highest ? value < range.highest : value <= range.highest);
  if (!good)
    throw Error(ExitCode::usage, "{} {}: expected {}", option, text.empty() ? "''" : text,
                describe_range(range));
  return value;
}

std::size_t parse_choice(const std::string& option, const std::string& text,
                         const std::vector<std::string>& allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), text);
  if (found != allowed.end()) return static_cast<std::size_t>(found - allowed.begin());
  throw Error(ExitCode::usage, "{} {}: expected one of {}", option, text, fmt::join(allowed, ", "));
}

std::vector<std::string> OptionSpec::help_lines() const {
  std::vector<std::string> lines = split(help, '\n');
  if (!default_text.empty()) lines.front() += " (default: " + default_text + ")";
  return lines;
}

OptionSpec make_option(const std::string& names, const std::string& value_name, const std::string& help) {
  OptionSpec spec;
  spec.names = split(names, ',');
  spec.value_name = value_name;
  spec.help = help;
  spec.config_key = key_of(spec.names.front());
  return spec;
}

template <typename Target>
OptionSpec number_option(const std::string& names, const std::string& value_name, Target& target,
                         Range<typename NumberOf<Target>::Type> range, const std::string& help) {
  using Number = typename NumberOf<Target>::Type;
  OptionSpec spec = make_option(names, value_name, help);
  spec.set = [option = spec.names.front(), &target, range](const std::string& text) {
    target = parse_number<Number>(option, text, range);
  };
  if constexpr (std::is_same_v<Target, Number>) {
    spec.get = [&target] { return nlohmann::ordered_json(target); };
    spec.default_text = print(target);
  } else {
    spec.get = [&target] { return target ? nlohmann::ordered_json(*target) : nlohmann::ordered_json(); };
  }
  return spec;
}

using Text = const std::string;
template OptionSpec number_option(Text&, Text&, int&, Range<int>, Text&);
template OptionSpec number_option(Text&, Text&, std::int64_t&, Range<std::int64_t>, Text&);
template OptionSpec number_option(Text&, Text&, std::uint64_t&, Range<std::uint64_t>, Text&);
template OptionSpec number_option(Text&, Text&, double&, Range<double>, Text&);
template OptionSpec number_option(Text&, Text&, std::optional<int>&, Range<int>, Text&);
template OptionSpec number_option(Text&, Text&, std::optional<std::int64_t>&, Range<std::int64_t>, Text&);
template OptionSpec number_option(Text&, Text&, std::optional<double>&, Range<double>, Text&);

OptionSpec percent_option(const std::string& names, double& target, Range<double> range,
                          const std::string& help) {
  OptionSpec spec = number_option(names, "P%", target, range, help);
  spec.set = [option = spec.names.front(), &target, range](const std::string& text) {
    target = parse_percent(option, text, range);
  };
  spec.default_text = print(std::round(1e8 * target) / 1e6) + "%";  // 7, not 7.000000000000001
  return spec;
}

OptionSpec quantity_option(const std::string& names, const std::string& value_name,
                           std::optional<double>& target,
                           const std::vector<std::pair<std::string, double>>& units,
                           const Range<double>& range, const std::string& help) {
  OptionSpec spec = make_option(names, value_name, help);
  spec.set = [name = spec.names.front(), value_name, &target, units, range](const std::string& text) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
    const std::string unit = text.substr(end);
    std::string known;
    double size = unit.empty() ? 1 : 0;
    for (const auto& [word, factor] : units) {
      append_part(known, word);
      if (word == unit) size = factor;
    }
    if (size == 0)
      throw Error(ExitCode::usage, "{} {}: expected a number with one of the units {}; pass it as {}", name,
                  text, known, value_name);
    target = size * parse_number<double>(name, text.substr(0, end),
                                         {range.lowest / size, range.highest / size, range.above_lowest});
  };
  spec.get = [&target] { return target ? nlohmann::ordered_json(*target) : nlohmann::ordered_json(); };
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
  OptionSpec spec = text_option(names, fmt::format("{}", fmt::join(allowed, "|")), target, help);
  spec.values = allowed;
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

std::vector<OptionSpec> help_options(std::optional<Shown>& wanted) {
  const auto option = [&wanted](const char* names, Shown shown, const char* help) {
    OptionSpec spec = make_option(names, "", help);
    spec.set = [&wanted, shown](const std::string&) { wanted = shown; };
    spec.config_key.clear();
    spec.ends_parsing = true;
    return spec;
  };
  return {option("--help,-h", Shown::in_help, "print what most people need"),
          option("--help-all", Shown::in_help_all, "print all options")};
}

OptionGroup rare(OptionGroup group) {
  for (OptionSpec& spec : group.options) spec = std::move(spec).rare();
  return group;
}

OptionSpec positional(const std::string& name, std::string& target, const std::string& help) {
  OptionSpec spec = text_option(name, "", target, help);
  spec.config_key = lower_case(spec.config_key);
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

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> shells{"bash", "zsh", "fish"};
  return shells;
}

std::vector<const OptionSpec*> all_options(const OptionTable& table) {
  std::vector<const OptionSpec*> specs;
  for (const OptionGroup& group : table.groups)
    for (const OptionSpec& spec : group.options) specs.push_back(&spec);
  return specs;
}

nlohmann::ordered_json config_json(const OptionTable& table) {
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  for (const OptionSpec* spec : all_options(table))
    if (!spec->config_key.empty()) config[spec->config_key] = spec->get();
  return config;
}

nlohmann::ordered_json config_schema(const OptionTable& table) {
  nlohmann::ordered_json properties;
  for (const OptionSpec* spec : all_options(table)) {
    if (spec->config_key.empty()) continue;
    nlohmann::ordered_json& property =
        properties[spec->config_key] = {{"description", spec->help.substr(0, spec->help.find('\n'))}};
    if (const nlohmann::ordered_json value = spec->get(); !value.is_null())
      property["type"] = {value.type_name(), "null"};
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", table.program + " --print-config"},
          {"type", "object"},
          {"properties", std::move(properties)}};
}

}  // namespace plumb
