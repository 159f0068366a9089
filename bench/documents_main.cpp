// plumbline_documents FOLDER: writes the manual pages and completions of all programs, and the schemas of
// their files, when they are built.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/output.h"
#include "bench/allreduce/allreduce_options.h"
#include "bench/commands/command.h"
#include "bench/documents/completions.h"
#include "bench/documents/man_page.h"
#include "bench/options/options.h"
#include "bench/output/build_info.h"
#include "results/record/last_words.h"
#include "results/record/schema.h"

namespace plumb {

extern const std::string_view kDlperfSweep;  // launch/sweeps/dlperf_resnet50.toml

namespace {

namespace fs = std::filesystem;

void write_documents(const std::string& folder) {
  const auto write = [output = Output{.option = "FOLDER", .path = folder}](const fs::path& name,
                                                                           const std::string& text) {
    const fs::path file = output.path / name;
    const OutputFolder made(output, file.parent_path());
    OutputFile written(output, file, Existing::replace);
    written.write(text);
    written.publish(OnDisk::later);
  };
  const auto write_page = [&](const ManPage& page) {
    write("man1/" + page.name + ".1", man_page(page, kVersion));
  };
  const auto write_completions = [&](const CompletedProgram& program) {
    for (const std::string& shell : completion_shells())
      for (const std::string& file : completion_files(shell, program.name))
        write("completions/" + file, completions(shell, program));
  };
  for (const std::string_view program : programs_of()) {
    BenchOptions options = default_options(program);
    const OptionTable table = bench_option_table(options);
    const std::string task(options.model->task);
    write_page(bench_man_page(table, "train " + task + " and time every step"));
    write_completions(completed(table));
  }
  AllreduceOptions allreduce;
  write_page(allreduce_man_page(allreduce_option_table(allreduce)));
  write_completions(completed(allreduce_option_table(allreduce)));
  write_page(plumbline_man_page(plumbline_commands(), std::string(kDlperfSweep)));
  write_completions(completed("plumbline", plumbline_commands()));
  write("schemas/result.schema.json", result_schema().dump(2) + "\n");
  write("schemas/last_words.schema.json", last_words_schema().dump(2) + "\n");
}

}  // namespace
}  // namespace plumb

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw plumb::Error(plumb::ExitCode::usage, "give one folder to write to");
    plumb::write_documents(argv[1]);
    return 0;
  } catch (const plumb::Error& error) {
    std::fprintf(stderr, "plumbline_documents: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline_documents: %s\n", error.what());
    return static_cast<int>(plumb::ExitCode::internal);
  }
}
