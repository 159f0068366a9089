// --help and --help-all.
#include <algorithm>

#include "base/options/option_table.h"
#include "base/text_table.h"

namespace plumb {
namespace {

constexpr std::size_t kIndent = 2, kHelpColumn = 34;

std::string left_column(const OptionSpec& spec) {
  return fmt::format("{}{}{}", fmt::join(spec.names, ", "), spec.value_name.empty() ? "" : " ",
                     spec.value_name);
}

// As many as it takes on a screen: bytes that go on with a UTF-8 character take none.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char letter) { return (letter & 0xC0) != 0x80; }));
}

std::string usage_line(const OptionTable& table) {
  std::string line = "Usage: " + table.program;
  for (const OptionSpec* spec : all_options(table))
    if (spec->is_positional())
      line += fmt::format(fmt::runtime(spec->required ? " {}" : " [{}]"), left_column(*spec));
  return line + " [options]\n";
}

// The option's names, and its help in the right column; what is said of a value is two columns further in.
std::string option_text(const OptionSpec& spec, std::size_t width) {
  std::string text, line = std::string(kIndent, ' ') + left_column(spec);
  std::size_t column = kHelpColumn;
  for (const std::string& help : spec.help_lines()) {
    for (const std::string& part : wrapped_lines(help, width - column)) {
      if (width_of(line) + 2 > kHelpColumn) {
        text += line + "\n";
        line.clear();
      }
      text += line + std::string(column - width_of(line), ' ') + part + "\n";
      line.clear();
    }
    column = kHelpColumn + 2;
  }
  return text;
}

}  // namespace

std::string options_text(const OptionTable& table, Shown wanted, int columns) {
  std::string text;
  for (const OptionGroup& group : table.groups) {
    std::string options;
    for (const OptionSpec& spec : group.options)
      if (spec.shown <= wanted) options += option_text(spec, static_cast<std::size_t>(columns));
    if (!options.empty()) text += "\n" + group.title + ":\n" + options;
  }
  if (!table.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : table.examples) text += std::string(kIndent, ' ') + example + "\n";
  return text;
}

std::string help_text(const OptionTable& table, Shown wanted, int columns) {
  std::string text = usage_line(table) + "\n";
  for (const std::string& line : wrapped_lines(table.description, static_cast<std::size_t>(columns)))
    text += line + "\n";
  return text + options_text(table, wanted, columns);
}

}  // namespace plumb
