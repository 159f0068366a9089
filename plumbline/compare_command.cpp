// `plumbline compare`: runs beside runs, and beside published results.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/error.h"
#include "base/text.h"
#include "plumbline/command.h"
#include "results/compare/compare.h"

namespace plumb {
namespace {

constexpr std::size_t kMostPublished = 4;  // frameworks beside each sample

struct CompareArguments {
  std::vector<std::string> paths;
  std::string published;
  AnalyzeOptions reading;
  CompareOptions options;
  bool json = false, verbose = false;
};

OptionTable compare_options(CompareArguments& arguments) {
  AnalyzeOptions& reading = arguments.reading;
  std::vector<OptionSpec> input{
      positional("PATH…", arguments.paths, "A, B, …: run folders, folders of runs or logs, or single logs")
          .as_required(),
      text_option("--published", "FILTER", arguments.published,
                  "show published numbers with all of these words, as in oneflow,fp32, or all")
          .with_default("those for A's kind of device, without B"),
      log_format_option(reading.log_format).rare(), warmup_option(reading.window).rare(),
      iterations_option(reading.window).rare()};
  std::ranges::move(one_log_options(reading), std::back_inserter(input));
  return {
      "plumbline compare",
      "Compares the runs of B, … with the runs of A: medians, their intervals, and whether a difference is "
      "shown. Only equal configurations are compared. A alone is compared with published numbers.",
      {{"Input", std::move(input)},
       {"Judgment",
        {percent_option("--min-effect", arguments.options.min_effect,
                        {.lowest = 0, .highest = 1, .below_highest = true}, "ignore differences below P %"),
         flag_option("--force", arguments.options.force, true,
                     "compare different configurations too, and mark them")}},
       {"Output",
        {flag_option("--json", arguments.json, true, "print one JSON object instead of the table"),
         flag_option("--verbose", arguments.verbose, true, "list every file that is left out").rare()}}},
      {"plumbline compare runs/a runs/b # is b faster than a?",
       "plumbline compare runs # compare with published numbers",
       "plumbline compare ours.log theirs.log # logs of any format"}};
}

std::vector<PublishedResult> wanted_results(const std::string& filter) {
  std::vector<PublishedResult> results = published_results();
  if (filter.empty() || filter == "all") return results;
  PublishedFilter words;
  words.words = split(filter, ',');
  std::erase_if(results, [&](const PublishedResult& result) { return !matches(result, words); });
  if (results.empty())
    throw Error(ExitCode::usage,
                "--published {}: no published number has all these words; see plumbline published", filter);
  return results;
}

std::vector<PublishedBeside> published_beside(const SampleSet& own, const std::string& filter) {
  const std::vector<PublishedResult> results = wanted_results(filter);
  return mapped(own.loaded.samples, [&](const Sample& sample) {
    return PublishedBeside{compared_sample(own, sample),
                           nearest_among(results, sample.configuration, kMostPublished, !filter.empty())};
  });
}

int compare_command(const CompareArguments& arguments) {
  std::vector<SampleSet> sets;
  for (const std::string& path : arguments.paths)
    sets.push_back({path, load_samples({path}, arguments.reading)});
  CompareReport report{.sets = sets,
                       .comparison = compare_sets(sets, arguments.options),
                       .published = {},
                       .min_effect = arguments.options.min_effect};
  if (sets.size() == 1 || !arguments.published.empty())
    report.published = published_beside(sets.front(), arguments.published);
  print_text(arguments.json ? json_text(compare_json(report)) : compare_text(report));
  std::vector<std::string> notes;
  std::vector<Note> left_out;
  for (const SampleSet& set : sets) {
    notes.insert(notes.end(), set.loaded.notes.begin(), set.loaded.notes.end());
    left_out.insert(left_out.end(), set.loaded.bad.begin(), set.loaded.bad.end());
  }
  notes.insert(notes.end(), report.comparison.notes.begin(), report.comparison.notes.end());
  print_messages(notes, left_out, arguments.verbose);
  return 0;
}

}  // namespace

const Command kCompareCommand = make_command("compare", "compare runs with runs, or with published numbers",
                                             compare_options, compare_command);

}  // namespace plumb
