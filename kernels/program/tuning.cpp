#include "kernels/program/tuning.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace plumb {

void apply_tuning(const Tuning& tuning, Program& program) {
  for (Instruction& instruction : program.instructions) {
    const auto choice = tuning.instructions.find(instruction.name);
    if (choice == tuning.instructions.end()) continue;
    instruction.engine = choice->second.engine;
    instruction.tuned_seconds = choice->second.seconds;
  }
}

nlohmann::json choices_to_json(const Tuning& tuning) {
  nlohmann::json plain = nlohmann::json::array(), instructions = nlohmann::json::object();
  for (const PlainLayer& layer : tuning.plain)
    plain.push_back({{"op", layer.op}, {"pattern", layer.pattern}, {"reason", layer.reason}});
  for (const auto& [name, choice] : tuning.instructions) {
    instructions[name] = {{"engine", choice.engine}};
    if (choice.seconds) instructions[name]["seconds"] = *choice.seconds;
  }
  return {{"plain", std::move(plain)}, {"steps", std::move(instructions)}};
}

Tuning choices_from_json(const nlohmann::json& json) {
  Tuning tuning;
  for (const auto& layer : json.at("plain"))
    tuning.plain.push_back({layer.at("op"), layer.at("pattern").get<FusedPattern>(), layer.at("reason")});
  for (const auto& [name, choice] : json.at("steps").items()) {
    InstructionChoice& made = tuning.instructions[name];
    made.engine = choice.at("engine");
    if (choice.contains("seconds")) made.seconds = choice.at("seconds").get<double>();
  }
  return tuning;
}

std::string trials_csv(const Tuning& tuning) {
  const auto quoted = [](const std::string& text) {  // RFC 4180: inner quotes doubled
    return fmt::format("\"{}\"", replaced(text, '"', "\"\""));
  };
  std::set<std::pair<std::string_view, std::string_view>> chosen;
  for (const auto& [name, choice] : tuning.instructions) chosen.emplace(choice.problem, choice.engine);
  std::string csv = "problem,engine,workspace_bytes,milliseconds,chosen\n";
  for (const auto& [problem, trials] : tuning.trials) {
    for (const EngineTrial& trial : trials) {
      csv += fmt::format("{},{},{},{},{}\n", quoted(problem), quoted(trial.engine), trial.workspace_bytes,
                         trial.seconds ? fmt::format("{:.6g}", *trial.seconds / 1e-3) : "",
                         chosen.contains({problem, trial.engine}) ? 1 : 0);
    }
  }
  return csv;
}

}  // namespace plumb
