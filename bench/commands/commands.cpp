#include "bench/commands/command.h"

namespace plumb {

const std::vector<Command>& plumbline_commands() {
  static const std::vector<Command> list{kAnalyzeCommand, kCompareCommand,   kExplainCommand, kGateCommand,
                                         kMakeRecCommand, kPublishedCommand, kReportCommand,  kSweepCommand};
  return list;
}

}  // namespace plumb
