// `plumbline published`: the numbers that frameworks publish.
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/error.h"
#include "plumbline/command.h"
#include "results/published/published.h"

namespace plumb {
namespace {

struct PublishedArguments {
  PublishedFilter filter;
  std::string framework, model;
  std::string format = "table";
  bool json = false;
};

OptionTable published_options(PublishedArguments& arguments) {
  PublishedFilter& filter = arguments.filter;
  return {
      "plumbline published",
      "Throughput that DLPerf, MLPerf, NVIDIA, insightface and others publish for ResNet-50 and ArcFace, by "
      "GPU, each with its source.",
      {{"Which",
        {positional("WORD…", filter.words,
                    "words that a row must have in its framework, model, data, precision, case or GPU: "
                    "oneflow, fp16, 4n8g"),
         text_option("--framework", "NAME", arguments.framework, "part of a framework's name: oneflow, ngc"),
         text_option("--model", "NAME", arguments.model,
                     "part of a model's name: resnet50, rn50v1b, r50, r100 or y1"),
         text_option("--gpu", "NAME", filter.gpu,
                     "part of a GPU's name, or its generation: h200, v100-sxm2, rtx, hopper")}},
       {"Output",
        {choice_option("--format", arguments.format, {"table", "csv", "json"}, "format of the table"),
         flag_option("--json", arguments.json, true, "the same as --format json")}}},
      {"plumbline published --gpu h200 # one GPU", "plumbline published resnet50 fp16 1n8g # one workload",
       "plumbline published --format csv # all rows, for a spreadsheet"}};
}

int published_command(const PublishedArguments& arguments) {
  PublishedFilter filter = arguments.filter;
  for (const std::string& word : {arguments.framework, arguments.model})
    if (!word.empty()) filter.words.push_back(word);
  std::vector<PublishedResult> results = published_results();
  std::erase_if(results, [&](const PublishedResult& result) { return !matches(result, filter); });
  if (results.empty())
    throw Error(
        ExitCode::usage,
        "no published number matches all of these words; plumbline published without them prints all");
  if (arguments.json || arguments.format == "json")
    print_text(json_text(published_json(results)));
  else
    print_text(arguments.format == "csv" ? published_csv(results) : published_table(results));
  return 0;
}

}  // namespace

const Command kPublishedCommand = make_command("published", "print the throughput that frameworks publish",
                                               published_options, published_command);

}  // namespace plumb
