// `plumbline report`: measured runs as one page.
#include <spdlog/fmt/chrono.h>

#include <ctime>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/new_file.h"
#include "bench/commands/command.h"
#include "bench/commands/logs.h"
#include "bench/output/version.h"
#include "results/compare/samples.h"
#include "results/report/html_page.h"
#include "results/report/plot.h"
#include "results/report/report_data.h"
#include "results/report/report_markdown.h"
#include "results/report/report_steps.h"

namespace plumb {
namespace {

enum class ReportFormat { html, svg, png, markdown, steps };

struct ReportArguments {
  std::vector<std::string> paths;
  TextOutput output;
  std::string title, plot;
  ReportFormat format = ReportFormat::html;
  bool verbose = false;
};

OptionTable report_options(ReportArguments& arguments) {
  return {
      "plumbline report",
      "Measured runs as one HTML page that needs nothing else: throughput and scaling beside published "
      "numbers, where the time of a step goes, memory, profile and trace, and what is odd about the runs. Or "
      "single plots and tables, for documents.",
      {{"Input",
        {positional("PATH…", arguments.paths,
                    "run folders, folders of them (--out of the benches), or folders of logs")
             .as_required()}},
       {"Output",
        {text_option("-o,--output", "FILE", arguments.output.path, "a new file; -: standard output")
             .as_required(),
         flag_option("--overwrite", arguments.output.overwrite, true, "replace FILE if it exists"),
         enum_option(
             "--format", arguments.format,
             {{"html", ReportFormat::html},
              {"svg", ReportFormat::svg},
              {"png", ReportFormat::png},
              {"markdown", ReportFormat::markdown},
              {"steps", ReportFormat::steps}},
             "the page; one plot, drawn by gnuplot; tables of medians in Markdown; or of every profiled "
             "step beside its roofline"),
         choice_option("--plot", arguments.plot, plot_names(), "which plot, with --format svg or png")
             .with_default(plot_names().front()),
         text_option("--title", "TEXT", arguments.title, "heading of the page")
             .with_default("what was run, and on what"),
         flag_option("--verbose", arguments.verbose, true, "name every file that is left out")}}}};
}

ReportOptions options_of(const ReportArguments& arguments) {
  const nlohmann::ordered_json build = build_json();
  return {.title = arguments.title,
          .made_by = fmt::format("plumbline {} ({})", build.at("version").get<std::string>(),
                                 build.at("commit").get<std::string>()),
          .created = fmt::format("{:%Y-%m-%d %H:%M UTC}", fmt::gmtime(std::time(nullptr)))};
}

bool is_picture(const ReportArguments& arguments) {
  return arguments.format == ReportFormat::svg || arguments.format == ReportFormat::png;
}

std::string text_of(const ReportArguments& arguments, const ReportData& data) {
  if (arguments.format == ReportFormat::html) return html_page(data);
  if (arguments.format == ReportFormat::markdown) return report_markdown(data);
  if (arguments.format == ReportFormat::steps) return report_steps(data);
  const Plot plot = plot_of_name(arguments.plot.empty() ? plot_names().front() : arguments.plot);
  return plot_picture(data, plot,
                      arguments.format == ReportFormat::svg ? PictureFormat::svg : PictureFormat::png);
}

int report_command(const ReportArguments& arguments) {
  if (!arguments.plot.empty() && !is_picture(arguments))
    throw Error(ExitCode::usage,
                "option --plot {} names a single plot, which --format svg or png draws: give one of them",
                arguments.plot);
  check_output("-o", arguments.output);
  const LoadedSamples samples = load_samples(arguments.paths);
  const ReportData data = collect_report(samples, options_of(arguments));
  write_output("-o", arguments.output, text_of(arguments, data));
  // The files of `samples` come first there, and are told with their flaws.
  const auto of_runs = data.left_out.begin() + static_cast<std::ptrdiff_t>(samples.bad.size());
  std::vector<std::string> notes = samples.notes;
  notes.insert(notes.end(), of_runs, data.left_out.end());
  print_messages(notes, samples.bad, arguments.verbose);
  return 0;
}

}  // namespace

const Command kReportCommand =
    make_command("report", "measured runs as one HTML page", report_options, report_command);

}  // namespace plumb
