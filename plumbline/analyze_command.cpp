// `plumbline analyze`: a folder of logs to a table.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/output.h"
#include "plumbline/command.h"
#include "results/analysis/analyze.h"

namespace plumb {
namespace {

struct AnalyzeArguments {
  AnalyzeOptions options;
  std::string log_dir;
  Output json{.option = "--json", .path = ""};
  bool markdown = false, verbose = false;
};

OptionTable analyze_options(AnalyzeArguments& arguments) {
  WindowChoice& window = arguments.options.window;
  std::vector<OptionSpec> input{
      positional("LOG_DIR", arguments.log_dir, "folder that holds 1n1g, 1n8g, …, or one log").as_required(),
      log_format_option(arguments.options.log_format), warmup_option(window), iterations_option(window)};
  std::ranges::move(one_log_options(arguments.options), std::back_inserter(input));
  return {
      "plumbline analyze",
      "Averages, medians and speedups of a folder of logs, LOG_DIR/<N>n<G>g/<model>_b<BS>_<prec>_<run>.log, "
      "or of "
      "one log. Logs that are short, broken, repeated, mixed or wrongly named are left out and named.",
      {{"Input", std::move(input)},
       {"Output",
        {text_option("--json", "FILE", arguments.json.path,
                     "write the analyzers' dictionary to a new file; without one, or for -, print just that")
             .with_bare_value("-"),
         flag_option("--overwrite", arguments.json.overwrite, true, "replace FILE if it exists"),
         flag_option("--markdown", arguments.markdown, true, "print the table in Markdown"),
         flag_option("--verbose", arguments.verbose, true, "name every file that is left out")}}}};
}

int analyze_command(const AnalyzeArguments& arguments) {
  const Output& json = arguments.json;
  if (!json.path.empty()) check_output(json);
  const Analysis analysis = analyze_logs(arguments.log_dir, arguments.options);
  if (!json.path.empty()) write_output(json, dictionary_text(analysis.dictionary) + "\n");
  if (!json.is_stdout()) print_text(arguments.markdown ? markdown_text(analysis) : table_text(analysis));
  print_messages(analysis.notes, analysis.bad, arguments.verbose);
  return 0;
}

}  // namespace

const Command kAnalyzeCommand = make_command("analyze", "averages, medians and speedups of a folder of logs",
                                             analyze_options, analyze_command);

}  // namespace plumb
