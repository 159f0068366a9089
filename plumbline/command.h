// The commands of `plumbline`: one list drives the program, its help, completions and man page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/options/completions.h"
#include "base/options/man_page.h"
#include "results/analysis/analyze.h"

namespace plumb {

extern const Command kAcceptCommand, kAnalyzeCommand, kCheckCommand, kCompareCommand, kDoctorCommand,
    kExplainCommand, kExportCommand, kGateCommand, kPostmortemCommand, kPublishedCommand, kReportCommand,
    kScalingCommand, kScreenCommand, kSweepCommand;

// All of them, by name.
inline const std::vector<Command>& plumbline_commands() {
  static const std::vector<Command> list{
      kAcceptCommand,  kAnalyzeCommand, kCheckCommand,  kCompareCommand,    kDoctorCommand,
      kExplainCommand, kExportCommand,  kGateCommand,   kPostmortemCommand, kPublishedCommand,
      kReportCommand,  kScalingCommand, kScreenCommand, kSweepCommand};
  return list;
}

// `options` binds the arguments to a table, at whose end --help and --help-all are added; `run` gets them as
// given.
template <typename Arguments>
Command make_command(const std::string& name, const std::string& help, OptionTable (*options)(Arguments&),
                     int (*run)(const Arguments&)) {
  const auto table_of = [options](Arguments& arguments, std::optional<Shown>& wanted) {
    OptionTable table = options(arguments);
    for (OptionSpec& spec : help_options(wanted)) table.groups.back().options.push_back(std::move(spec));
    return table;
  };
  const auto parse_and_run = [=](int argc, const char* const* argv) {
    Arguments arguments;
    std::optional<Shown> wanted;
    const OptionTable table = table_of(arguments, wanted);
    parse_command_line(table, argc, argv);
    if (!wanted) return run(arguments);
    print_text(help_text(table, *wanted));
    return 0;
  };
  const auto table_alone = [=] {
    Arguments arguments;
    std::optional<Shown> wanted;
    return table_of(arguments, wanted);
  };
  return {name, help, parse_and_run, table_alone};
}

// The manual page.
ManPage plumbline_man_page(const std::vector<Command>& commands);

// What several commands share.

// "auto", the name of one of log_formats(), or the file of a format.
OptionSpec log_format_option(std::string& target);
// --warmup and --iters.
OptionSpec warmup_option(WindowChoice& window);
OptionSpec iterations_option(WindowChoice& window);

// --epoch, --from and --to; --case, --bs and --precision of a single log.
std::vector<OptionSpec> one_log_options(AnalyzeOptions& options);

// --link 25Gbit/s.
OptionSpec link_option(std::optional<double>& gigabytes_per_second);

// The file in the first of the folders that has it; empty: none has.
std::string file_in_folders(const std::vector<std::string>& folders, const char* name);

// report.html in an accept's folder, as `plumbline report FOLDER` makes it. Throws Error.
void write_accept_report(const fs::path& folder);

// "plumbline: …" to stderr.
void say(const std::string& line);
// Notes and what was left out, to stderr: on a terminal 20 lines, elsewhere 4, with `verbose` all.
void print_messages(const std::vector<std::string>& notes, const std::vector<Note>& left_out, bool verbose);

}  // namespace plumb
