// A table of options: one list of names, helps, defaults and checks drives parsing, --help, the nearest-name
// hint, shell completions and the resolved configuration as JSON.
#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace plumb {

// Where people read of an option: in --help, in --help-all, or in the manual page and options.md only, if
// other programs are the ones that pass it.
enum class Shown { in_help, in_help_all, in_documents };

// One option, bound to a member of some struct through `set` and `get`. Made by the functions below.
struct OptionSpec {
  std::vector<std::string> names;    // {"--bs", "--batch-per-device"}; a positional argument: {"LOG_DIR"}
  std::vector<std::string> aliases;  // further names that are accepted, but shown nowhere
  std::string value_name;            // "N", "auto|cpu|cuda"; empty for a flag
  std::vector<std::string> values;  // those that completions offer, though others may be allowed; empty: none
  std::string help;  // one sentence, then a line for each value that needs one: "what\nauto: this\noff: that"
  Shown shown = Shown::in_help;
  std::string default_text;   // shown by --help; empty: nothing is shown
  std::string config_key;     // key in the configuration; empty: leaves no trace there
  std::string exclusive_set;  // at most one option of a named set may be given
  bool required = false;
  std::string bare_value;      // of an option that may be given without one; empty: it may not
  bool repeated = false;       // a positional argument that takes one value or more, each through `set`
  bool ends_parsing = false;   // --help: given, the rest of the command line isn't looked at
  bool behind_dashes = false;  // takes every word behind "--", whatever it begins with
  // Takes one value ("" for a flag). Throws Error(usage): option, value, what is allowed.
  std::function<void(const std::string& value)> set;
  std::function<nlohmann::ordered_json()> get;

  bool is_flag() const { return value_name.empty() && !is_positional(); }
  bool is_positional() const { return !names.front().starts_with('-'); }
  // The help's lines, the first one with the default.
  std::vector<std::string> help_lines() const;

  // For chaining onto the functions below.
  OptionSpec also_called(std::string alias) && {
    aliases.push_back(std::move(alias));
    return std::move(*this);
  }
  OptionSpec with_default(std::string text) && { return with(&OptionSpec::default_text, std::move(text)); }
  OptionSpec with_bare_value(std::string value) && { return with(&OptionSpec::bare_value, std::move(value)); }
  OptionSpec with_key(std::string key) && { return with(&OptionSpec::config_key, std::move(key)); }
  OptionSpec in_set(std::string name) && { return with(&OptionSpec::exclusive_set, std::move(name)); }
  OptionSpec with_values(std::vector<std::string> offered) && {
    return with(&OptionSpec::values, std::move(offered));
  }
  OptionSpec as_words_behind_dashes() && { return with(&OptionSpec::behind_dashes, true); }
  OptionSpec as_required() && { return with(&OptionSpec::required, true); }
  OptionSpec rare() && { return with(&OptionSpec::shown, Shown::in_help_all); }  // few people need it
  OptionSpec internal() && { return with(&OptionSpec::shown, Shown::in_documents); }

 private:
  template <typename Value>
  OptionSpec with(Value OptionSpec::*member, Value value) {
    this->*member = std::move(value);
    return std::move(*this);
  }
};

struct OptionGroup {
  std::string title;
  std::vector<OptionSpec> options;
};

struct OptionTable {
  std::string program;      // "bench_resnet50", "plumbline analyze"
  std::string description;  // one or two sentences
  std::vector<OptionGroup> groups;
  std::vector<std::string> examples = {};  // command lines, each with its meaning after " # "
};

template <typename Number>
struct Range {
  Number lowest = std::numeric_limits<Number>::lowest();
  Number highest = std::numeric_limits<Number>::max();
  bool above_lowest = false;  // the lowest itself isn't allowed
  bool below_highest = false;
};

// Strict: the whole text is one finite number inside the range, else Error(usage) that names `option`.
// Numbers: int, std::int64_t, std::uint64_t and double.
template <typename Number>
Number parse_number(const std::string& option, const std::string& text, const Range<Number>& range);
// Index into `allowed`.
std::size_t parse_choice(const std::string& option, const std::string& text,
                         const std::vector<std::string>& allowed);

template <typename Target>
struct NumberOf {
  using Type = Target;
};
template <typename Number>
struct NumberOf<std::optional<Number>> {
  using Type = Number;
};

// `names` are comma-separated, the first is the one that messages use and, without dashes and with '_' for
// '-', the key in the configuration. The default shown is the target's value when the table is made (unless
// with_default says otherwise). Targets must outlive the table. A target is a number or an optional one.
template <typename Target>
OptionSpec number_option(const std::string& names, const std::string& value_name, Target& target,
                         Range<typename NumberOf<Target>::Type> range, const std::string& help);
// A share as "2%" or "0.02", `range` is of the share; the default is shown in percent.
OptionSpec percent_option(const std::string& names, double& target, Range<double> range,
                          const std::string& help);
// A number with a unit after it, "100Gbps". A number alone is in the first of `units`, as are target and
// `range`; each unit has its size in the first one.
OptionSpec quantity_option(const std::string& names, const std::string& value_name,
                           std::optional<double>& target,
                           const std::vector<std::pair<std::string, double>>& units,
                           const Range<double>& range, const std::string& help);
OptionSpec text_option(const std::string& names, const std::string& value_name, std::string& target,
                       const std::string& help);
// A text that must be one of `allowed`.
OptionSpec choice_option(const std::string& names, std::string& target,
                         const std::vector<std::string>& allowed, const std::string& help);
// Given, it sets `target` to `value`.
OptionSpec flag_option(const std::string& names, bool& target, bool value, const std::string& help);
// A group that few people need.
OptionGroup rare(OptionGroup group);
// --help and --help-all: `wanted` is what a command line asks for.
std::vector<OptionSpec> help_options(std::optional<Shown>& wanted);
// Given, nothing after it is checked: --version.
OptionSpec stop_option(const std::string& names, bool& target, const std::string& help);
OptionSpec positional(const std::string& name, std::string& target, const std::string& help);
// "PATH…": as many as are given, in their order.
OptionSpec positional(const std::string& name, std::vector<std::string>& target, const std::string& help);

// Without set and get, for kinds of its own.
OptionSpec make_option(const std::string& names, const std::string& value_name, const std::string& help);

// One of the values of an enum.
template <typename Enum>
OptionSpec enum_option(const std::string& names, Enum& target,
                       const std::vector<std::pair<std::string, Enum>>& values, const std::string& help) {
  const auto allowed = mapped(values, [](const auto& value) { return value.first; });
  OptionSpec spec = make_option(names, fmt::format("{}", fmt::join(allowed, "|")), help);
  spec.values = allowed;
  spec.set = [option = spec.names.front(), allowed, values, &target](const std::string& text) {
    target = values[parse_choice(option, text, allowed)].second;
  };
  spec.get = [values, &target] {
    for (const auto& [name, value] : values)
      if (value == target) return nlohmann::ordered_json(name);
    return nlohmann::ordered_json();
  };
  for (const auto& [name, value] : values)
    if (value == target) spec.default_text = name;
  return spec;
}

// Shells that completions are written for (completions.h).
const std::vector<std::string>& completion_shells();

// Every option, in the table's order.
std::vector<const OptionSpec*> all_options(const OptionTable& table);

// Reads the command line into the bound targets. argv[0] is left out. Throws Error(usage).
void parse_command_line(const OptionTable& table, int argc, const char* const* argv);

// --help, or --help-all with Shown::in_help_all: grouped, with defaults and examples, no line longer than
// `columns`.
std::string help_text(const OptionTable& table, Shown wanted, int columns = 100);
// The part of help_text() after usage and description.
std::string options_text(const OptionTable& table, Shown wanted, int columns);

// Every option that has a key, in the table's order, with its present value.
nlohmann::ordered_json config_json(const OptionTable& table);
// The JSON Schema of config_json.
nlohmann::ordered_json config_schema(const OptionTable& table);

// The known name nearest to a mistyped one; empty if none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

}  // namespace plumb
