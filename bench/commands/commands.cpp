#include "bench/commands/analyze_command.h"
#include "bench/commands/command.h"
#include "bench/commands/compare_command.h"
#include "bench/commands/explain_command.h"
#include "bench/commands/gate_command.h"
#include "bench/commands/make_rec_command.h"
#include "bench/commands/published_command.h"
#include "bench/commands/report_command.h"
#include "bench/commands/sweep_command.h"

namespace plumb {

const std::vector<Command>& plumbline_commands() {
  static const std::vector<Command> list{
      {"analyze", "averages, medians and speedups of a folder of logs", analyze_command, analyze_table},
      {"compare", "runs beside runs, and beside what is published", compare_command, compare_table},
      {"explain", "where a framework's step loses time, by its profiler's trace", explain_command,
       explain_table},
      {"gate", "exit code 1 where runs are slower than a baseline's", gate_command, gate_option_table},
      {"make-rec", "an image folder to a RecordIO file and its index", make_rec_command, make_rec_table},
      {"published", "what frameworks publish for the same workloads", published_command,
       published_option_table},
      {"report", "measured runs as one HTML page", report_command, report_table},
      {"sweep", "the runs of a sweep file, shuffled, and their table", sweep_command, sweep_table}};
  return list;
}

}  // namespace plumb
