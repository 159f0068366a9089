#include "bench/make_rec.h"

#include <csignal>
#include <cstdio>
#include <string>

#include "base/build.h"
#include "base/console/print.h"
#include "base/console/progress.h"
#include "base/error.h"
#include "base/options/completions.h"
#include "base/process/this_process.h"
#include "base/steady_clock.h"
#include "bench/data/encoded_images.h"
#include "bench/data/record_io.h"
#include "bench/run/environment.h"
#include "bench/run/run_program.h"

namespace plumb {
namespace {

void make_rec(const MakeRecArguments& arguments) {
  RecordFiles files({.option = "OUT", .path = arguments.out});
  const auto images = open_folder(arguments.folder, kFirstInexactLabel, "FOLDER");
  ProgressBar bar(stderr, terminal_of(stderr), static_cast<std::int64_t>(images->count()), 1);
  const double start = steady_seconds();
  const std::uint64_t bytes = write_records(*images, files, [&](std::size_t done) {
    bar.update(static_cast<std::int64_t>(done), steady_seconds() - start);
  });
  bar.clear();
  const std::string written =
      fmt::format("{} ({:.1f} MiB) and {}: {}\n", files.records_name.string(),
                  static_cast<double>(bytes) / (1 << 20), files.index_name.string(), images->description());
  if (std::fputs(written.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(ExitCode::io_error,
                "cannot write to standard output, though the two files are complete; make room");
}

}  // namespace

OptionTable make_rec_options(MakeRecArguments& arguments) {
  std::vector<OptionSpec> help = help_options(arguments.help);
  return {
      "make_rec",
      "Packs an image folder into OUT.rec and its index OUT.idx, in MXNet's RecordIO format. Labels count "
      "the "
      "class folders in sorted order, from 0. The JPEG files' bytes stay as they are.",
      {{"Input and output",
        {positional("FOLDER", arguments.folder, "one subfolder of .jpg or .jpeg files per class")
             .as_required(),
         positional("OUT", arguments.out, "name of the two new files, with or without .rec").as_required()}},
       {"Information",
        {stop_option("--version", arguments.version, "print version and libraries"), help[0], help[1]}}},
      {"make_rec imagenet/train train # write train.rec and train.idx"}};
}

int run_make_rec(int argc, const char* const* argv) {
  open_standard_descriptors();
  MakeRecArguments arguments;
  if (const auto code = answer_to_shell(argc, argv, [&] { return make_rec_options(arguments); }))
    return *code;
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails like one on a full disk
  return run_program("make_rec", [&] {
    const OptionTable table = make_rec_options(arguments);
    parse_command_line(table, argc, argv);
    if (arguments.help)
      print_text(help_text(table, *arguments.help));
    else if (arguments.version)
      print_text(version_text(table.program, engine_build_json()));
    else
      make_rec(arguments);
  });
}

}  // namespace plumb
