#include "kernels/program/tuning.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace plumb {
namespace {

nlohmann::json json_of(const EngineChoices& choices) {
  nlohmann::json plain = nlohmann::json::array(), instructions = nlohmann::json::object();
  for (const PlainLayer& layer : choices.plain)
    plain.push_back({{"op", layer.op}, {"pattern", layer.pattern}, {"reason", layer.reason}});
  for (const auto& [name, choice] : choices.instructions) {
    instructions[name] = {{"engine", choice.engine}};
    if (choice.seconds) instructions[name]["seconds"] = *choice.seconds;
  }
  return {{"plain", std::move(plain)}, {"steps", std::move(instructions)}};
}

EngineChoices choices_of(const nlohmann::json& json) {
  EngineChoices choices;
  for (const auto& layer : json.at("plain"))
    choices.plain.push_back({layer.at("op"), layer.at("pattern").get<FusedPattern>(), layer.at("reason")});
  for (const auto& [name, choice] : json.at("steps").items()) {
    InstructionChoice& made = choices.instructions[name];
    made.engine = choice.at("engine");
    if (choice.contains("seconds")) made.seconds = choice.at("seconds").get<double>();
  }
  return choices;
}

}  // namespace

void apply_tuning(const EngineChoices& tuning, Program& program) {
  for (Instruction& instruction : program.instructions) {
    const auto choice = tuning.instructions.find(instruction.name);
    if (choice == tuning.instructions.end()) continue;
    instruction.engine = choice->second.engine;
    instruction.tuned_seconds = choice->second.seconds;
  }
}

nlohmann::json choices_to_json(const Tuning& tuning) {
  nlohmann::json json = json_of(tuning);
  if (tuning.smallest) json["smallest"] = json_of(*tuning.smallest);
  return json;
}

Tuning choices_from_json(const nlohmann::json& json) {
  Tuning tuning{choices_of(json)};
  if (json.contains("smallest")) tuning.smallest = choices_of(json.at("smallest"));
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
