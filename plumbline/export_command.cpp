// `plumbline export`: finished runs in formats of other tools.
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/output.h"
#include "plumbline/command.h"
#include "results/export/exported_runs.h"

namespace plumb {
namespace {

enum class ExportFormat { none, mlperf, prometheus };

struct ExportArguments {
  std::vector<std::string> paths;
  Output output{.option = "-o", .path = "-"};
  ExportFormat format = ExportFormat::none;
  bool verbose = false;
};

OptionTable export_options(ExportArguments& arguments) {
  return {"plumbline export",
          "Writes finished runs whose checks have passed in formats of other tools, and lists the others.",
          {{"Input", {positional("RUN…", arguments.paths, "run folders, or folders of runs").as_required()}},
           {"Output",
            {enum_option("--format", arguments.format,
                         {{"mlperf", ExportFormat::mlperf}, {"prometheus", ExportFormat::prometheus}},
                         "format to write\nmlperf: lines of MLPerf's logging library, a file per run\n"
                         "prometheus: medians per configuration, for the text files of node exporter")
                 .as_required(),
             text_option("-o,--output", "FILE", arguments.output.path,
                         "new file; -: standard output; mlperf: or a folder for result_0.txt, …"),
             flag_option("--overwrite", arguments.output.overwrite, true, "replace FILE if it exists"),
             flag_option("--verbose", arguments.verbose, true, "list every run that is left out")}}},
          {"plumbline export runs --format mlperf -o results # result_0.txt, result_1.txt, …",
           "plumbline export runs --format prometheus -o plumbline.prom --overwrite # for Prometheus"}};
}

// The files of `count` runs.
std::vector<Output> files_of_runs(const Output& output, std::size_t count) {
  std::error_code error;
  if (!fs::is_directory(output.path, error)) {
    if (count == 1) return {output};
    throw Error(
        ExitCode::usage,
        "-o {}: a file holds one run of MLPerf's logs, and these are {} runs; pass a folder, or a single run",
        output.path, count);
  }
  std::vector<Output> files;
  for (std::size_t i = 0; i < count; ++i)
    files.push_back({output.option, fmt::format("{}/result_{}.txt", output.path, i), output.overwrite});
  return files;
}

void write_mlperf(const std::vector<Sample>& samples, const Output& output) {
  std::vector<const Measurement*> runs;
  for (const Sample& sample : samples)
    for (const Measurement& run : sample.runs) runs.push_back(&run);
  const std::vector<Output> files = files_of_runs(output, runs.size());
  for (const Output& file : files) check_output(file);
  for (std::size_t i = 0; i < files.size(); ++i)
    write_output(files[i], mlperf_log(*runs[i]->record, runs[i]->started));
}

int export_command(const ExportArguments& arguments) {
  const bool is_prometheus = arguments.format == ExportFormat::prometheus;
  check_output(is_prometheus ? arguments.output : files_of_runs(arguments.output, 1).front());
  const LoadedSamples loaded = exported_runs(load_samples(arguments.paths));
  if (is_prometheus)
    write_output(arguments.output, prometheus_text(loaded.samples));
  else
    write_mlperf(loaded.samples, arguments.output);
  print_messages(loaded.notes, loaded.bad, arguments.verbose);
  return 0;
}

}  // namespace

const Command kExportCommand =
    make_command("export", "write runs for MLPerf's tools or for Prometheus", export_options, export_command);

}  // namespace plumb
