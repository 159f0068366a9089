#include "results/report/run_parts.h"

#include <algorithm>
#include <functional>

#include "results/record/program_format.h"

namespace plumb {

RunProfile run_profile(const Json& json, const std::string& origin, std::size_t most_instructions) {
  RunProfile profile;
  fields::read_all(ops_reader(json, origin, kProfileFormat), profile);
  std::ranges::stable_sort(profile.instructions, std::greater(), &ProfiledInstruction::seconds);
  if (profile.instructions.size() > most_instructions) profile.instructions.resize(most_instructions);
  profile.in_report = true;
  for (ProfiledInstruction& instruction : profile.instructions) instruction.in_report = true;
  return profile;
}

}  // namespace plumb
