// Reading a command line by an option table, and hints for what it does not know.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/options/option_table.h"

namespace plumb {
namespace {

std::size_t edit_distance(const std::string& left, const std::string& right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (left[i - 1] == right[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::vector<std::string> dashed_names(const OptionTable& table) {
  std::vector<std::string> names;
  for (const OptionSpec* spec : all_options(table))
    if (!spec->is_positional()) names.insert(names.end(), spec->names.begin(), spec->names.end());
  return names;
}

// `extras`: what no option took, with the first unknown option or stray word in front.
[[noreturn]] void refuse_unknown(const OptionTable& table, const std::vector<std::string>& extras) {
  const std::string& argument = extras.front();
  if (!argument.starts_with('-'))
    throw Error(ExitCode::usage, "argument '{}' is not expected; see {} --help", argument, table.program);
  const std::string name = argument.substr(0, argument.find('='));
  const std::string near = name.starts_with("--") ? nearest_name(name, dashed_names(table)) : "";
  if (near.empty())
    throw Error(ExitCode::usage, "{} is not an option; see {} --help-all", name, table.program);
  throw Error(ExitCode::usage, "{} is not an option; did you mean {}?", name, near);
}

struct Registered {
  const OptionSpec* spec;
  CLI::Option* option;
};

std::vector<Registered> register_options(CLI::App& app, const OptionTable& table) {
  std::vector<Registered> registered;
  for (const OptionSpec* spec : all_options(table)) {
    const std::string names = fmt::format("{}{}{}", fmt::join(spec->names, ","),
                                          spec->aliases.empty() ? "" : ",", fmt::join(spec->aliases, ","));
    CLI::Option* option = nullptr;
    if (spec->is_flag()) {
      option = app.add_flag(names);
      option->disable_flag_override();
    } else {
      option = app.add_option(names);
      // An option takes 0 values as well: that one is missing, or given twice, is said in our words.
      option->expected(spec->is_positional() ? 1 : 0,
                       spec->repeated ? CLI::detail::expected_max_vector_size : 1);
      option->allow_extra_args(spec->repeated);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    registered.push_back({spec, option});
  }
  return registered;
}

// Takes out of the command line what stands behind "--", if an argument of the table is to get it.
std::vector<std::string> take_words_behind_dashes(const OptionTable& table,
                                                  std::vector<const char*>& arguments) {
  const std::vector<const OptionSpec*> specs = all_options(table);
  if (std::ranges::none_of(specs, &OptionSpec::behind_dashes)) return {};
  const auto dashes = std::ranges::find(arguments, std::string_view("--"));
  if (dashes == arguments.end()) return {};
  const std::vector<std::string> words(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return words;
}

void check_exclusive_sets(const std::vector<Registered>& given) {
  std::map<std::string, std::string> chosen;
  for (const Registered& item : given) {
    if (item.spec->exclusive_set.empty()) continue;
    const std::string& name = item.spec->names.front();
    const auto [entry, is_first] = chosen.emplace(item.spec->exclusive_set, name);
    if (!is_first)
      throw Error(ExitCode::usage, "{} and {} exclude each other; pass only one {}", entry->second, name,
                  item.spec->exclusive_set);
  }
}

void apply(const Registered& item) {
  const OptionSpec& spec = *item.spec;
  const std::string& name = spec.names.front();
  if (spec.is_flag()) return spec.set("");
  const std::vector<std::string> values = item.option->results();
  if (values.size() > 1 && !spec.repeated)
    throw Error(ExitCode::usage, "{} is passed {} times ({}, {}); pass it once", name, values.size(),
                values.front(), values.back());
  for (const std::string& value : values) {
    const bool is_bare = value.empty() || value == "{}";
    if (is_bare && !spec.bare_value.empty()) return spec.set(spec.bare_value);
    if (is_bare)
      throw Error(ExitCode::usage, "{0} needs a value; pass {0} {1}", name,
                  spec.value_name.empty() ? "TEXT" : spec.value_name);
    spec.set(value);
  }
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    std::size_t distance = edit_distance(name, candidate);
    if (name.size() >= 4 && candidate.starts_with(name)) distance = std::min<std::size_t>(distance, 1);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

void parse_command_line(const OptionTable& table, int argc, const char* const* argv) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const std::vector<Registered> registered = register_options(app, table);
  std::vector<const char*> arguments(argv, argv + argc);
  const std::vector<std::string> behind_dashes = take_words_behind_dashes(table, arguments);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    const std::string text = error.what();
    if (text.ends_with(" flag override")) {
      const std::string flag = "--" + text.substr(0, text.find(' '));
      throw Error(ExitCode::usage, "{0} accepts no value; pass {0} alone", flag);
    }
    throw Error(ExitCode::usage, "{}; see {} --help", text, table.program);
  }
  std::vector<Registered> given;
  for (const Registered& item : registered)
    if (item.option->count() > 0) given.push_back(item);
  if (std::ranges::any_of(given, [](const Registered& item) { return item.spec->ends_parsing; })) {
    for (const Registered& item : given)
      if (item.spec->is_flag() || item.spec->ends_parsing) apply(item);  // --version --json
    return;
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) refuse_unknown(table, extras);
  check_exclusive_sets(given);
  for (const Registered& item : given) apply(item);
  for (const Registered& item : registered)
    if (item.spec->behind_dashes)
      for (const std::string& word : behind_dashes) item.spec->set(word);
  for (const Registered& item : registered)
    if (item.spec->required && item.option->count() == 0)
      throw Error(ExitCode::usage, "{} is missing; pass it: {}", item.spec->names.front(),
                  split(item.spec->help, '\n').front());
}

}  // namespace plumb
