// `plumbline analyze`: a folder of logs to a table.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/output.h"
#include "base/text_table.h"
#include "plumbline/command.h"
#include "results/analysis/analyze.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {

struct AnalyzeArguments {
  AnalyzeOptions options;
  std::string log_dir;
  Output json{.option = "--json", .path = ""};
  bool markdown = false, verbose = false, list_formats = false;
};

OptionTable analyze_options(AnalyzeArguments& arguments) {
  WindowChoice& window = arguments.options.window;
  std::vector<OptionSpec> input{
      positional("LOG_DIR", arguments.log_dir, "folder with 1n1g, 1n8g, …, or a single log").as_required(),
      log_format_option(arguments.options.log_format), warmup_option(window), iterations_option(window)};
  std::ranges::move(one_log_options(arguments.options), std::back_inserter(input));
  return {
      "plumbline analyze",
      "Averages, medians and speedups of a log, or of the logs "
      "LOG_DIR/<N>n<G>g/<model>_b<BS>_<prec>_<run>.log. It leaves out logs that are short, broken, repeated, "
      "mixed or wrongly named, and lists them.",
      {{"Input", std::move(input)},
       {"Output",
        {text_option("--json", "FILE", arguments.json.path,
                     "write the dictionary of DLPerf's scripts to a new file; -: print it")
             .with_bare_value("-"),
         flag_option("--overwrite", arguments.json.overwrite, true, "replace FILE if it exists").rare(),
         flag_option("--markdown", arguments.markdown, true, "print the table in Markdown").rare(),
         flag_option("--verbose", arguments.verbose, true, "list every file that is left out").rare(),
         stop_option("--list-formats", arguments.list_formats, "print the log formats")}}},
      {"plumbline analyze logs # averages, medians and speedups",
       "plumbline analyze training.log --log-format pytorch --case 1n8g --bs 256 # another framework's log",
       "plumbline analyze logs --json result.json # what DLPerf's scripts write"}};
}

std::string formats_text() {
  std::vector<TextRow> rows{{"format", "framework", "bench programs write it"}};
  for (const LogFormat* format : log_formats())
    rows.push_back(
        {std::string(format->name), std::string(format->framework), format->written_step > 0 ? "yes" : ""});
  return padded_table(rows, "l");
}

int analyze_command(const AnalyzeArguments& arguments) {
  if (arguments.list_formats) {
    print_text(formats_text());
    return 0;
  }
  const Output& json = arguments.json;
  if (!json.path.empty()) check_output(json);
  const Analysis analysis = analyze_logs(arguments.log_dir, arguments.options);
  if (!json.path.empty()) write_output(json, dictionary_text(analysis.dictionary) + "\n");
  if (!json.is_stdout()) print_text(arguments.markdown ? markdown_text(analysis) : table_text(analysis));
  print_messages(analysis.notes, analysis.bad, arguments.verbose);
  return 0;
}

}  // namespace

const Command kAnalyzeCommand =
    make_command("analyze", "print averages, medians and speedups of logs", analyze_options, analyze_command);

}  // namespace plumb
