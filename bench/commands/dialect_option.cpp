#include "bench/commands/dialect_option.h"

#include <vector>

#include "results/dialects/dialect.h"

namespace plumb {

OptionSpec dialect_option(std::string& target) {
  std::vector<std::string> names{"auto"};
  std::string help = "how lines of logs are read; auto looks at them, and reads Plumbline's own as " +
                     std::string(dialects().front()->name) + "; else one of";
  for (const Dialect* dialect : dialects()) {
    help += (names.size() > 1 ? ", " : " ") + std::string(dialect->name);
    names.emplace_back(dialect->name);
  }
  OptionSpec spec = choice_option("--dialect", target, names, help);
  spec.value_name = "auto|NAME";
  return spec;
}

}  // namespace plumb
