#include "kernels/program/program.h"

#include <initializer_list>
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

// `names` are in the order of the enum.
template <typename Enum>
std::string_view name_in(std::initializer_list<std::string_view> names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  if (index >= names.size()) throw std::logic_error("a value that its enum doesn't have");
  return names.begin()[index];
}

}  // namespace

std::string_view name_of(DType dtype) {
  return name_in({"f32", "f16", "bf16", "i32", "i64", "u8"}, dtype);
}

std::string_view name_of(Role role) {
  return name_in({"input", "parameter", "gradient", "optimizer", "statistic", "activation",
                  "activation_gradient", "state", "overflow"},
                 role);
}

std::string_view name_of(Lane lane) {
  return name_in({"input", "compute", "communication"}, lane);
}

std::string_view name_of(Phase phase) {
  return name_in({"input", "forward", "backward", "reduce", "update"}, phase);
}

std::string_view Instruction::kind() const {
  return std::visit([]<typename T>(const T&) { return T::kName; }, operation);
}

std::vector<BufferUse> Instruction::uses() const {
  std::vector<BufferUse> uses;
  std::visit(
      [&](const auto& one) {
        for_each_operand(one, [&](std::string_view called, const auto& operand) {
          uses.push_back({operand.buffer, operand.access(), called});
        });
      },
      operation);
  return uses;
}

std::string_view name_of(Collective::Kind kind) {
  return name_in({"allreduce_sum", "allreduce_max", "allgather", "reduce_scatter_sum", "broadcast"}, kind);
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
