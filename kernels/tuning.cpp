#include "kernels/tuning.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace plumb {
namespace {

// RFC 4180: in quotes, inner quotes doubled.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

}  // namespace

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
  std::string text = "problem,engine,workspace_bytes,milliseconds,chosen\n";
  for (const auto& [problem, trials] : tuning.trials) {
    for (const EngineTrial& trial : trials) {
      char milliseconds[32] = "";
      if (trial.seconds) std::snprintf(milliseconds, sizeof milliseconds, "%.6g", 1e3 * *trial.seconds);
      const bool chosen = &trial == &trials.front() && trial.failure.empty();
      text += quoted(problem) + "," + quoted(trial.engine) + "," + std::to_string(trial.workspace_bytes) +
              "," + milliseconds + "," + (chosen ? "1" : "0") + "\n";
    }
  }
  return text;
}

}  // namespace plumb
