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
        {text_option("--framework", "NAME", filter.framework, "part of a framework's name: oneflow, ngc"),
         text_option("--model", "NAME", filter.model, "resnet50, rn50v1b, r50, r100 or y1"),
         text_option("--precision", "NAME", filter.precision, "fp32, tf32, fp16, amp or bf16"),
         text_option("--gpu", "NAME", filter.gpu,
                     "part of a GPU's name, or its generation: h200, v100-sxm2, rtx, hopper"),
         text_option("--data", "NAME", filter.data,
                     "ImageNet, face_emore, glint360k, webface or synthetic; or data-parallel, "
                     "model-parallel or partial-fc"),
         text_option("--case", "<N>n<G>g", filter.case_name, "nodes and devices per node: 4n8g"),
         number_option("--bs", "N", filter.batch_per_device, {1, 1'000'000}, "images per device and step")
             .also_called("--batch-size")
             .with_default("all")}},
       {"Output",
        {choice_option("--format", arguments.format, {"table", "csv", "json"}, "format of the table"),
         flag_option("--json", arguments.json, true, "the same as --format json")}}},
      {"plumbline published --gpu h200 # one GPU",
       "plumbline published --model resnet50 --precision fp16 --case 1n8g # one workload",
       "plumbline published --format csv # all rows, for a spreadsheet"}};
}

std::vector<PublishedResult> matching(const PublishedFilter& filter) {
  std::vector<PublishedResult> results = published_results();
  std::erase_if(results, [&](const PublishedResult& result) { return !matches(result, filter); });
  return results;
}

// Names the first option that alone matches nothing, else all together.
[[noreturn]] void refuse(const PublishedFilter& filter) {
  const auto refuse_alone = [&](const char* option, const std::string& value, const PublishedFilter& alone) {
    if (!value.empty() && matching(alone).empty())
      throw Error(ExitCode::usage,
                  "{} {}: no published number has it; plumbline published without options prints all", option,
                  value);
  };
  refuse_alone("--framework", filter.framework, {.framework = filter.framework});
  refuse_alone("--model", filter.model, {.model = filter.model});
  refuse_alone("--precision", filter.precision, {.precision = filter.precision});
  refuse_alone("--gpu", filter.gpu, {.gpu = filter.gpu});
  refuse_alone("--data", filter.data, {.data = filter.data});
  refuse_alone("--case", filter.case_name, {.case_name = filter.case_name});
  if (filter.batch_per_device > 0)
    refuse_alone("--bs", std::to_string(filter.batch_per_device),
                 {.batch_per_device = filter.batch_per_device});
  throw Error(ExitCode::usage, "no published number matches all these options; leave one out");
}

int published_command(const PublishedArguments& arguments) {
  const std::vector<PublishedResult> results = matching(arguments.filter);
  if (results.empty()) refuse(arguments.filter);
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
