#include "comm/gradient_reduction.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"

namespace plumb {
namespace {

constexpr std::size_t kViewAlignment = 64;  // bytes: a cache line, and the widest vector load of a CPU

struct Gradient {
  BufferId buffer = 0;
  InstructionId complete_after = 0;  // the last instruction before the updates that uses it
};

struct Bucket {
  std::vector<BufferId> gradients;   // of one dtype
  InstructionId complete_after = 0;  // its last gradient's
};

std::size_t aligned(std::size_t bytes) {
  return (bytes + kViewAlignment - 1) / kViewAlignment * kViewAlignment;
}

bool is_reduced(const Buffer& buffer) {
  return buffer.role == Role::gradient && !buffer.sharded;
}

// In completion order.
std::vector<Gradient> find_gradients(const Program& program) {
  std::vector<std::optional<InstructionId>> last_uses(program.buffers.size());  // from the first write on
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    if (program.instructions[id].phase == Phase::update) continue;
    for (const BufferUse& use : program.instructions[id].uses())
      if (use.writes() || last_uses[use.buffer]) last_uses[use.buffer] = id;
  }
  std::vector<Gradient> gradients;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (!is_reduced(buffer)) continue;
    if (buffer.view)
      throw Error(ExitCode::internal, "gradient " + buffer.name + " lies in another buffer already");
    if (!last_uses[id])
      throw Error(ExitCode::internal, "no instruction writes " + buffer.name + ", so it cannot be reduced");
    gradients.push_back({id, *last_uses[id]});
  }
  std::ranges::stable_sort(gradients, {}, &Gradient::complete_after);
  return gradients;
}

// In completion order.
std::vector<Bucket> make_buckets(const Program& program, const BucketOptions& options) {
  std::map<DType, std::vector<Gradient>> by_dtype;
  for (const Gradient& gradient : find_gradients(program))
    by_dtype[program.buffers[gradient.buffer].dtype].push_back(gradient);
  std::vector<Bucket> buckets;
  for (const auto& [dtype, gradients] : by_dtype) {
    std::vector<std::size_t> bytes;
    for (const Gradient& gradient : gradients) bytes.push_back(program.buffers[gradient.buffer].bytes);
    for (const std::vector<std::size_t>& members : assign_buckets(bytes, options)) {
      Bucket bucket{.gradients = {}, .complete_after = gradients[members.back()].complete_after};
      for (std::size_t member : members) bucket.gradients.push_back(gradients[member].buffer);
      buckets.push_back(std::move(bucket));
    }
  }
  std::ranges::stable_sort(buckets, {}, &Bucket::complete_after);
  return buckets;
}

BufferId add_flat_buffer(Program& program, const std::string& name, DType dtype, std::size_t elements,
                         bool persistent) {
  program.buffers.push_back({.name = name,
                             .role = Role::gradient,
                             .dtype = dtype,
                             .dims = {static_cast<std::int64_t>(elements)},
                             .bytes = elements * bytes_of(dtype),
                             .persistent = persistent});
  return program.buffers.size() - 1;
}

// Adds the bucket's buffer and makes its gradients views of it.
BufferId lay_out(Program& program, const Bucket& bucket, DType dtype, const std::string& name) {
  const BufferId root = program.buffers.size();
  std::size_t bytes = 0;
  for (BufferId gradient : bucket.gradients) {
    program.buffers[gradient].view = View{.root = root, .offset = bytes};
    bytes += aligned(program.buffers[gradient].bytes);
  }
  return add_flat_buffer(program, name, dtype, bytes / bytes_of(dtype), true);
}

Instruction allreduce_instruction(const Program& program, const std::string& name,
                                  std::vector<ReadWrite> parts, BufferId root) {
  const Buffer& buffer = program.buffers[root];
  return {.name = name + ".allreduce",
          .operation = Collective{.kind = Collective::Kind::allreduce_sum,
                                  .buffer = root,
                                  .elements = buffer.bytes / bytes_of(buffer.dtype),
                                  .dtype = buffer.dtype,
                                  .parts = std::move(parts)},
          .phase = Phase::reduce,
          .lane = Lane::communication};
}

Instruction cast_instruction(const Program& program, const std::string& name, BufferId from, BufferId into,
                             double scale) {
  Instruction instruction{
      .name = name, .operation = Cast{.from = from, .into = into, .scale = scale}, .phase = Phase::reduce};
  instruction.work.bytes = static_cast<double>(program.buffers[from].bytes + program.buffers[into].bytes);
  return instruction;
}

// Reduced gradients are the same on all ranks, and so is their overflow. Only the owning rank sees overflow
// in a sharded gradient.
bool finds_what_others_miss(const Program& program, const FindOverflow& search) {
  return std::ranges::any_of(search.gradients,
                             [&](BufferId gradient) { return program.buffers[gradient].sharded; });
}

DType reduced_dtype(ReduceDType choice, DType own) {
  return choice == ReduceDType::fp32 ? DType::f32 : choice == ReduceDType::fp16 ? DType::f16 : own;
}

// Adds the bucket's buffers. Appends to `start` what runs once its gradients are complete, and to `finish`
// what runs before the first update.
void add_bucket(Program& program, const Bucket& bucket, const std::string& name,
                const GradientReductionOptions& options, std::vector<Instruction>& start,
                std::vector<Instruction>& finish) {
  const DType own = program.buffers[bucket.gradients.front()].dtype;
  const DType dtype = reduced_dtype(options.dtype, own);
  const BufferId root = lay_out(program, bucket, own, name);
  if (dtype == own)
    return start.push_back(
        allreduce_instruction(program, name, {bucket.gradients.begin(), bucket.gradients.end()}, root));
  const std::size_t elements = program.buffers[root].bytes / bytes_of(own);
  const BufferId staging = add_flat_buffer(program, name + ".staging", dtype, elements, false);
  start.push_back(cast_instruction(program, name + ".cast", root, staging, 1.0 / options.world_size));
  start.push_back(allreduce_instruction(program, name, {staging}, staging));
  finish.push_back(cast_instruction(program, name + ".cast_back", staging, root, options.world_size));
}

InstructionId last_backward(const Program& program) {
  InstructionId last = 0;
  for (InstructionId id = 0; id < program.instructions.size(); ++id)
    if (program.instructions[id].phase == Phase::backward) last = id;
  return last;
}

void append(std::vector<Instruction>& to, std::vector<Instruction>&& instructions) {
  std::move(instructions.begin(), instructions.end(), std::back_inserter(to));
}

}  // namespace

Program add_gradient_reduction(Program program, const GradientReductionOptions& options) {
  const std::vector<Bucket> buckets = make_buckets(program, options.buckets);
  InstructionId latest = last_backward(program);
  if (!buckets.empty()) latest = std::max(latest, buckets.back().complete_after);
  std::vector<std::vector<Instruction>> starts_after(program.instructions.size());
  std::vector<Instruction> before_updates;
  for (std::size_t i = 0; i < buckets.size(); ++i)
    add_bucket(program, buckets[i], "bucket" + std::to_string(i), options,
               starts_after[options.overlap ? buckets[i].complete_after : latest], before_updates);
  std::vector<Instruction> instructions;
  for (InstructionId id = 0; id < starts_after.size(); ++id) {
    if (program.instructions[id].phase == Phase::update)
      append(instructions, std::exchange(before_updates, {}));
    instructions.push_back(std::move(program.instructions[id]));
    const auto* search = instructions.back().as<FindOverflow>();
    if (search && finds_what_others_miss(program, *search)) {
      // Sums the flag, so that all ranks skip the update if one does.
      const BufferId flag = search->overflow;
      instructions.push_back(allreduce_instruction(program, program.buffers[flag].name, {flag}, flag));
    }
    append(instructions, std::move(starts_after[id]));
  }
  append(instructions, std::move(before_updates));
  program.instructions = std::move(instructions);
  return program;
}

double sent_bytes_per_rank(const Program& program, int world_size) {
  double bytes = 0;
  for (const Instruction& instruction : program.instructions) {
    const Collective* collective = instruction.as<Collective>();
    if (!collective) continue;
    bytes += (has_parts(collective->kind) ? 1 : 2) * static_cast<double>(collective->elements) *
             static_cast<double>(bytes_of(collective->dtype));
  }
  return bytes * (world_size - 1) / world_size;
}

}  // namespace plumb
