// `plumbline export`: finished runs for Prometheus.
#include <string>
#include <vector>

#include "base/output.h"
#include "plumbline/command.h"
#include "results/export/exported_runs.h"

namespace plumb {
namespace {

struct ExportArguments {
  std::vector<std::string> paths;
  Output output{.option = "-o", .path = "-"};
  std::string format = "prometheus";
  bool verbose = false;
};

OptionTable export_options(ExportArguments& arguments) {
  return {"plumbline export",
          "Writes the finished runs whose checks have passed, as a text file for Prometheus, and lists the "
          "other runs.",
          {{"Input", {positional("RUN…", arguments.paths, "run folders, or folders of runs").as_required()}},
           {"Output",
            {choice_option("--format", arguments.format, {"prometheus"},
                           "format to write\n"
                           "prometheus: medians per configuration, for the text files of node exporter"),
             text_option("-o,--output", "FILE", arguments.output.path, "new file; -: standard output"),
             flag_option("--overwrite", arguments.output.overwrite, true, "replace FILE if it exists"),
             flag_option("--verbose", arguments.verbose, true, "list every run that is left out")}}},
          {"plumbline export runs --format prometheus -o plumbline.prom --overwrite # for Prometheus"}};
}

int export_command(const ExportArguments& arguments) {
  check_output(arguments.output);
  const LoadedSamples loaded = exported_runs(load_samples(arguments.paths));
  write_output(arguments.output, prometheus_text(loaded.samples));
  print_messages(loaded.notes, loaded.bad, arguments.verbose);
  return 0;
}

}  // namespace

const Command kExportCommand =
    make_command("export", "write runs for Prometheus", export_options, export_command);

}  // namespace plumb
