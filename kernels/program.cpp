#include "kernels/program.h"

#include <stdexcept>
#include <string_view>

#include "base/hash.h"

namespace plumb {
namespace {

// Least significant byte first, so that the hash doesn't depend on byte order.
std::uint64_t hash_number(std::uint64_t hash, std::uint64_t number) {
  for (int i = 0; i < 8; ++i, number >>= 8) {
    const char byte = static_cast<char>(number & 0xff);
    hash = fnv1a({&byte, 1}, hash);
  }
  return hash;
}

// The collective's own buffer and the buckets cast into it.
std::vector<BufferId> reduced_roots(const Program& program, BufferId reduced) {
  std::vector<BufferId> roots{reduced};
  for (const Instruction& instruction : program.instructions) {
    const auto* cast = instruction.as<Cast>();
    if (cast && cast->into == reduced) roots.push_back(cast->from);
  }
  return roots;
}

[[noreturn]] void unknown(const char* type) {
  throw std::logic_error(std::string("no such ") + type);
}

}  // namespace

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  unknown("DType");
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::parameter:
      return "parameter";
    case Role::gradient:
      return "gradient";
    case Role::optimizer:
      return "optimizer";
    case Role::statistic:
      return "statistic";
    case Role::activation:
      return "activation";
    case Role::activation_gradient:
      return "activation_gradient";
    case Role::state:
      return "state";
    case Role::overflow:
      return "overflow";
  }
  unknown("Role");
}

std::string_view name_of(Lane lane) {
  switch (lane) {
    case Lane::input:
      return "input";
    case Lane::compute:
      return "compute";
    case Lane::communication:
      return "communication";
  }
  unknown("Lane");
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::input:
      return "input";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::reduce:
      return "reduce";
    case Phase::update:
      return "update";
  }
  unknown("Phase");
}

std::string_view name_of(const Operation& operation) {
  return std::visit([]<typename T>(const T&) { return T::kName; }, operation);
}

std::vector<BufferUse> uses_of(const Operation& operation) {
  std::vector<BufferUse> uses;
  std::visit(
      [&](const auto& instruction) {
        for_each_operand(instruction, [&](std::string_view name, const auto& operand) {
          uses.push_back({operand.buffer, operand.access(), name});
        });
      },
      operation);
  return uses;
}

std::string_view name_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::allreduce_sum:
      return "allreduce_sum";
    case Collective::Kind::allreduce_max:
      return "allreduce_max";
    case Collective::Kind::allgather:
      return "allgather";
    case Collective::Kind::reduce_scatter_sum:
      return "reduce_scatter_sum";
  }
  unknown("Collective::Kind");
}

bool has_parts(Collective::Kind kind) {
  return kind == Collective::Kind::allgather || kind == Collective::Kind::reduce_scatter_sum;
}

BufferId root_of(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffers.at(id);
  return buffer.view ? buffer.view->root : id;
}

std::uint64_t reduction_hash(const Program& program) {
  std::vector<std::vector<BufferId>> views(program.buffers.size());
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].view) views[root_of(program, id)].push_back(id);
  }
  std::uint64_t hash = kFnvOffset;
  for (const Instruction& instruction : program.instructions) {
    const Collective* collective = instruction.as<Collective>();
    if (!collective) continue;
    hash = fnv1a(name_of(collective->kind), hash);
    hash = fnv1a(name_of(collective->dtype), hash);
    hash = hash_number(hash, collective->elements);
    const Buffer& root = program.buffers.at(collective->buffer);
    hash = hash_number(fnv1a(root.name, hash), root.bytes);
    hash = fnv1a(root.layout, hash);
    if (has_parts(collective->kind)) continue;
    for (BufferId source : reduced_roots(program, collective->buffer)) {
      for (BufferId id : views[source]) {
        const Buffer& part = program.buffers[id];
        hash = hash_number(fnv1a(part.name, hash), part.view->offset);
        hash = fnv1a(part.layout, hash);
        hash = hash_number(hash, part.bytes);
      }
    }
  }
  return hash;
}

}  // namespace plumb
