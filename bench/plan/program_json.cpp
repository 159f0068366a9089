#include <array>

#include "bench/plan/step_plan.h"
#include "results/record/profile.h"

namespace plumb {
namespace {

const char* letter_of(Access access) {
  static constexpr std::array kLetters{"r", "w", "rw"};
  return kLetters[static_cast<std::size_t>(access)];
}

nlohmann::ordered_json buffer_json(const Buffer& buffer) {
  nlohmann::ordered_json json = {{"name", buffer.name},
                                 {"role", name_of(buffer.role)},
                                 {"dtype", name_of(buffer.dtype)},
                                 {"dims", buffer.dims},
                                 {"bytes", buffer.bytes}};
  if (buffer.persistent) json["persistent"] = true;
  if (buffer.sharded) json["sharded"] = true;
  if (buffer.view) json["view"] = {{"of", buffer.view->root}, {"offset", buffer.view->offset}};
  return json;
}

nlohmann::ordered_json instruction_json(const Instruction& instruction) {
  nlohmann::ordered_json uses = nlohmann::ordered_json::array();
  for (const BufferUse& use : instruction.uses())
    uses.push_back({{"operand", use.operand}, {"buffer", use.buffer}, {"access", letter_of(use.access)}});
  nlohmann::ordered_json json = {{"name", instruction.name},
                                 {"kind", instruction.kind()},
                                 {"phase", name_of(instruction.phase)},
                                 {"lane", name_of(instruction.lane)},
                                 {"uses", uses},
                                 {"workspace_bytes", instruction.workspace_bytes},
                                 {"macs", instruction.work.macs},
                                 {"bytes", instruction.work.bytes}};
  if (!instruction.engine.empty()) json["engine"] = instruction.engine;
  if (instruction.tuned_seconds) json["tuned_seconds"] = *instruction.tuned_seconds;
  if (const auto* collective = instruction.as<Collective>())
    json["collective"] = {{"kind", name_of(collective->kind)},
                          {"buffer", collective->buffer},
                          {"elements", collective->elements},
                          {"dtype", name_of(collective->dtype)}};
  return json;
}

}  // namespace

nlohmann::ordered_json program_json(const StepPlan& plan) {
  const Program& program = plan.program;
  nlohmann::ordered_json json = {{"format", kProgramFormat}, {"arena_bytes", plan.memory.arena_bytes}};
  json["buffers"] = nlohmann::ordered_json::array();
  json["ops"] = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < program.buffers.size(); ++index) {
    nlohmann::ordered_json buffer = buffer_json(program.buffers[index]);
    buffer["offset"] = plan.memory.offsets.at(index);
    json["buffers"].push_back(std::move(buffer));
  }
  for (const Instruction& instruction : program.instructions)
    json["ops"].push_back(instruction_json(instruction));
  return json;
}

}  // namespace plumb
