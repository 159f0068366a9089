// `plumbline report`: measured runs as one page.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/build.h"
#include "base/console/print.h"
#include "base/error.h"
#include "base/output.h"
#include "base/units.h"
#include "launch/verdict/verdict.h"
#include "plumbline/command.h"
#include "results/compare/samples.h"
#include "results/record/links.h"
#include "results/report/history.h"
#include "results/report/report_data.h"

namespace plumb {
namespace {

enum class ReportFormat { html, markdown, json };

struct ReportArguments {
  std::vector<std::string> paths;
  Output output{.option = "-o", .path = ""};
  std::string links;
  std::optional<double> link;  // GB/s
  ReportFormat format = ReportFormat::html;
  std::optional<std::int64_t> baseline_last;
  double max_regression = GateCriteria().max_regression;
  bool history = false, verbose = false;
};

OptionTable report_options(ReportArguments& arguments) {
  return {
      "plumbline report",
      "Writes one HTML page about runs: scaling, throughput next to published numbers, where the time of a "
      "step goes, profile, and what is odd. With --format markdown it writes tables instead.",
      {{"Input",
        {positional("PATH…", arguments.paths, "run folders, or folders of runs, sweeps, logs or an accept")
             .as_required(),
         text_option("--links", "FILE", arguments.links,
                     "links.json of bench_allreduce, by which scaling is predicted")
             .with_default("links.json in a PATH, else the runs' own probes"),
         link_option(arguments.link).with_default("accept's").rare()}},
       {"History",
        {flag_option("--history", arguments.history, true,
                     "show throughput over commits and dates, with the gate's verdict of each point"),
         number_option("--baseline-last", "N", arguments.baseline_last, {1, 1'000'000},
                       "runs before a point that it is compared with")
             .with_default(std::to_string(HistoryOptions().baseline_last))
             .rare(),
         percent_option("--max-regression", arguments.max_regression,
                        {.lowest = 0, .highest = 1, .below_highest = true}, "mark changes over P %")
             .rare()}},
       {"Output",
        {text_option("-o,--output", "FILE", arguments.output.path, "new file; -: standard output")
             .as_required(),
         flag_option("--overwrite", arguments.output.overwrite, true, "replace FILE if it exists"),
         enum_option("--format", arguments.format,
                     {{"html", ReportFormat::html},
                      {"markdown", ReportFormat::markdown},
                      {"json", ReportFormat::json}},
                     "what to write\nhtml: the page\nmarkdown: medians\njson: the points of --history"),
         flag_option("--verbose", arguments.verbose, true, "list every file that is left out").rare()}}},
      {"plumbline report runs -o report.html # runs as a page",
       "plumbline report runs --links links.json -o report.html # and whether they scale as they should",
       "plumbline report history --history -o history.html # throughput over commits"}};
}

// Throws Error(bad_data) if the file that is named can't be used; one that is found is judged by the report.
std::string links_of(const ReportArguments& arguments) {
  if (arguments.links.empty()) return file_in_folders(arguments.paths, kLinksFile);
  read_links(arguments.links);
  return arguments.links;
}

std::string made_by() {
  const Json build = build_json();
  return fmt::format("plumbline {} ({})", build.at("version").get<std::string>(),
                     build.at("commit").get<std::string>());
}
std::string created() {
  return utc_now("%Y-%m-%d %H:%M UTC");
}

ReportOptions options_of(const ReportArguments& arguments) {
  ReportOptions options{.made_by = made_by(), .created = created(), .links = links_of(arguments)};
  if (const std::string file = file_in_folders(arguments.paths, kVerdictFile); !file.empty()) {
    options.verdict = read_verdict(file);
    if (const auto& link = options.verdict.find("expected_link_bytes_per_second");
        link != options.verdict.end() && link->is_number())
      options.expected_link = link->get<double>();
  }
  if (arguments.link) options.expected_link = *arguments.link * kGiga;
  return options;
}

History history_of(const ReportArguments& arguments, const LoadedSamples& samples) {
  HistoryOptions options{.made_by = made_by(), .created = created()};
  options.criteria.max_regression = arguments.max_regression;
  if (arguments.baseline_last) options.baseline_last = static_cast<std::size_t>(*arguments.baseline_last);
  return collect_history(samples, options);
}

void check_formats(const ReportArguments& arguments) {
  if (arguments.history && arguments.format == ReportFormat::markdown)
    throw Error(ExitCode::usage, "--format markdown and --history exclude each other; pass html or json");
  if (!arguments.history && arguments.format == ReportFormat::json)
    throw Error(ExitCode::usage, "--format json needs --history; use each run's result.json for single runs");
  if (arguments.history && !arguments.links.empty())
    throw Error(ExitCode::usage, "--links {} and --history exclude each other; leave one out",
                arguments.links);
  if (!arguments.history &&
      (arguments.baseline_last || arguments.max_regression != GateCriteria().max_regression))
    throw Error(ExitCode::usage, "--baseline-last and --max-regression need --history; add it");
}

// An accept that failed before its runs has a verdict only.
LoadedSamples samples_of(const ReportArguments& arguments) {
  try {
    return load_samples(arguments.paths);
  } catch (const Error&) {
    if (arguments.history || file_in_folders(arguments.paths, kVerdictFile).empty()) throw;
    return {};
  }
}

void write_report(const ReportArguments& arguments, const LoadedSamples& samples) {
  const ReportData data = collect_report(samples, options_of(arguments));
  write_output(arguments.output,
               arguments.format == ReportFormat::markdown ? report_markdown(data) : html_page(data));
  // The files of `samples` come first there, and are told with their flaws.
  const auto of_runs = data.left_out.begin() + static_cast<std::ptrdiff_t>(samples.bad.size());
  std::vector<std::string> notes = samples.notes;
  notes.insert(notes.end(), of_runs, data.left_out.end());
  print_messages(notes, samples.bad, arguments.verbose);
}

void write_history(const ReportArguments& arguments, const LoadedSamples& samples) {
  const History history = history_of(arguments, samples);
  write_output(arguments.output, arguments.format == ReportFormat::json ? json_text(history_json(history))
                                                                        : html_page(history));
  print_messages(samples.notes, samples.bad, arguments.verbose);
}

int report_command(const ReportArguments& arguments) {
  check_formats(arguments);
  check_output(arguments.output);
  const LoadedSamples samples = samples_of(arguments);
  if (arguments.history)
    write_history(arguments, samples);
  else
    write_report(arguments, samples);
  return 0;
}

}  // namespace

void write_accept_report(const fs::path& folder) {
  const ReportArguments arguments{
      .paths = {folder.string()},
      .output = {.option = "--output", .path = (folder / "report.html").string(), .overwrite = true}};
  const ReportData data = collect_report(samples_of(arguments), options_of(arguments));
  write_output(arguments.output, html_page(data));
}

const Command kReportCommand =
    make_command("report", "write runs as one HTML page", report_options, report_command);

}  // namespace plumb
