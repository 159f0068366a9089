#include "kernels/cuda/instruction_tuner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/plan/storage.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t kMaxEngines = 10;  // engines that work, best first by heuristics
// cuDNN takes a second or more to compile some engines. Once building a problem's engines has taken this
// long, only the first few that work are timed.
constexpr double kEnoughBuilding = 0.5;
constexpr std::size_t kMinEngines = 3;
constexpr std::size_t kRoomAlignment = 256;

// Own kernels whose work a fused engine may do.
bool competes_with_fusion(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvBackwardData>();
  return (conv && conv->relu_mask) ||
         instruction.is_one_of<BatchNormStatistics, BatchNormFinalize, BatchNormApply, BatchNormBackward,
                               BatchNormPairBackward, BatchNormBackwardApply, SamplePixels, ChannelProducts,
                               ProductNormStatistics, BlockEndForward, MaskedGradient, ProductNormBackward,
                               BlockEndBackwardData, Accumulate>();
}

// "norm_apply f16 256x64x56x56, f32 2x64, …". Operands that are read and written, as sums that are added to,
// end in " rw".
std::string text_of(const Program& program, const Instruction& instruction) {
  std::vector<std::string> operands;
  for (const BufferUse& use : instruction.uses()) {
    const Buffer& buffer = program.buffers[use.buffer];
    operands.push_back(fmt::format("{} {}{}", name_of(buffer.dtype), fmt::join(buffer.dims, "x"),
                                   use.access == Access::read_write ? " rw" : ""));
  }
  return fmt::format("{} {}", instruction.kind(), fmt::join(operands, ", "));
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kRoomAlignment - 1) / kRoomAlignment * kRoomAlignment;
}

// Most failures leave the GPU usable; some make every further call fail.
bool gpu_is_lost(cudaStream_t stream) {
  cudaGetLastError();
  return cudaStreamSynchronize(stream) != cudaSuccess;
}

// Engines that work come first, faster ones before slower ones; without times, heuristics order.
std::pair<bool, double> rank_of(const EngineTrial& trial) {
  return {!trial.failure.empty(), trial.seconds.value_or(std::numeric_limits<double>::max())};
}

}  // namespace

InstructionTuner::InstructionTuner(const Engines& device, const Graph& graph, const UpdateRule& rule,
                                   const TuningOptions& how, TuningCache& cache)
    : device_(device), graph_(graph), rule_(rule), how_(how), cache_(cache) {
  if (how_.time_engines) timer_.emplace(device.stream);
}

Tuning InstructionTuner::tune(const DescribeOptions& options, const DeviceLimits& limits) {
  try_all(options, limits);
  const auto cost_of = [&](const Program& program, const Instruction& instruction) -> InstructionCost {
    const std::vector<EngineTrial>& trials = trials_of(program, instruction);
    if (trials.empty()) return {};
    return {.seconds = trials.front().seconds.value_or(0), .failure = trials.front().failure};
  };
  Tuning tuning;
  DescribeOptions chosen = options;
  chosen.plain = tuning.plain = choose_fusion(graph_, options, limits, cost_of);
  const Program program = cuda::describe(graph_, chosen, limits);
  for (const Instruction& instruction : program.instructions) {
    const std::vector<EngineTrial>& trials = trials_of(program, instruction);
    if (!trials.empty() && trials.front().failure.empty())
      tuning.instructions[instruction.name] = {trials.front().engine, trials.front().seconds,
                                               problem_of(program, instruction)};
  }
  tuning.trials = trials_;
  return tuning;
}

// Each problem once, in the order of the Programs.
void InstructionTuner::try_all(const DescribeOptions& options, const DeviceLimits& limits) {
  DescribeOptions unfused = options;
  unfused.fuse = false;
  const std::array programs{cuda::describe(graph_, options, limits), cuda::describe(graph_, unfused, limits)};
  std::vector<Work> works;
  for (const Program& program : programs)
    for (const Instruction& instruction : program.instructions) {
      std::string problem = problem_of(program, instruction);
      if (!problem.empty() && std::ranges::find(works, problem, &Work::problem) == works.end())
        works.push_back({program, instruction, std::move(problem)});
    }
  for (std::size_t i = 0; i < works.size(); ++i) {
    trials_of(works[i].program, works[i].instruction);
    if (how_.progress) how_.progress(i + 1, works.size());
  }
}

std::string InstructionTuner::problem_of(const Program& program, const Instruction& instruction) const {
  if (const std::optional<ConvProblem> problem = conv_problem(graph_, program, instruction))
    return how_.time_engines || is_fused(*problem) ? cuda::text_of(*problem) : "";
  const bool is_tried = how_.time_engines ? competes_with_fusion(instruction) : is_by_products(instruction);
  return is_tried ? text_of(program, instruction) : "";
}

const std::vector<EngineTrial>& InstructionTuner::trials_of(const Program& program,
                                                            const Instruction& instruction) {
  static const std::vector<EngineTrial> kNoChoice;
  const std::string problem = problem_of(program, instruction);
  if (problem.empty()) return kNoChoice;
  const auto [found, is_new] = trials_.try_emplace(problem);
  if (!is_new) return found->second;
  const Work work{program, instruction, problem};
  if (!conv_problem(graph_, program, instruction))
    found->second = {try_own_kernel(work)};
  else
    found->second = try_convolution(work);
  return found->second;
}

std::vector<EngineTrial> InstructionTuner::try_convolution(const Work& work) {
  ConvCandidates listed;
  try {
    listed = device_.convolutions.candidates(conv_problem(graph_, work.program, work.instruction).value(),
                                             work.instruction.workspace_bytes);
  } catch (const Error& error) {  // the library lacks the pattern
    return {{.failure = error.what()}};
  }
  const auto* known = cache_.find(work.problem);  // what failed is tried again
  if (known && known->front().seconds &&
      std::ranges::count(listed.engines, known->front().engine, &ConvCandidate::engine) > 0)
    return *known;
  std::vector<EngineTrial> trials;
  std::chrono::duration<double> building{};
  std::size_t working = 0;
  std::optional<double> best;
  const auto is_enough = [&] {
    return working >= kMaxEngines || (working >= kMinEngines && building.count() > kEnoughBuilding) ||
           (working > 0 && !how_.time_engines);
  };
  for (std::size_t i = 0; i < listed.engines.size() && !is_enough(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::optional<ConvPlan> plan = listed.build(i);
    building += std::chrono::steady_clock::now() - start;
    if (!plan) continue;
    trials.push_back(try_plan(*plan, work, best));
    if (!trials.back().failure.empty()) continue;
    ++working;
    if (trials.back().seconds) best = std::min(best.value_or(*trials.back().seconds), *trials.back().seconds);
  }
  std::ranges::stable_sort(trials, {}, rank_of);
  if (trials.empty()) {
    std::string failure = device_.convolutions.library + " has no engine";
    append_part(failure, listed.failure, ": ");
    return {{.failure = failure}};
  }
  if (timer_) cache_.remember(work.problem, trials);
  return trials;
}

EngineTrial InstructionTuner::try_plan(const ConvPlan& plan, const Work& work, std::optional<double> best) {
  EngineTrial trial{.engine = plan.engine, .workspace_bytes = plan.workspace_bytes};
  const Arena room = make_room(work.program, work.instruction, plan.workspace_bytes);
  std::vector<std::byte*> operands;
  for (const BufferUse& use : work.instruction.uses()) operands.push_back(room.data(use.buffer));
  run(
      trial, work.problem, [&] { plan.run(device_.stream, operands, room.workspace()); }, best);
  return trial;
}

EngineTrial InstructionTuner::try_own_kernel(const Work& work) {
  Program alone{.buffers = work.program.buffers,
                .instructions = {work.instruction},
                .tensors = {},
                .allow_tf32 = work.program.allow_tf32};
  Context context{device_, graph_, rule_, alone};
  Instruction& prepared = alone.instructions.front();
  Binder bind_instruction;
  try {
    bind_instruction = prepare_instruction(context, prepared);
  } catch (const Error& error) {  // plain instructions are what to do about it, not what the error advises
    const std::string failure = error.what();
    return {.failure = failure.substr(0, failure.find("; "))};
  }
  EngineTrial trial{.engine = prepared.engine, .workspace_bytes = prepared.workspace_bytes};
  const Arena room = make_room(alone, prepared, prepared.workspace_bytes);
  run(trial, work.problem, bind_instruction(room));
  return trial;
}

void InstructionTuner::run(EngineTrial& trial, const std::string& problem,
                           const std::function<void()>& enqueue, std::optional<double> best) const {
  try {
    if (timer_) {
      trial.seconds = timer_->seconds(enqueue, best);
    } else {
      enqueue();
      check(cudaStreamSynchronize(device_.stream));
    }
  } catch (const Error& error) {
    trial.failure = error.what();
    if (gpu_is_lost(device_.stream))
      throw Error(
          ExitCode::internal,
          "engine {} for {} left the GPU unusable ({}); start again with --no-autotune or --fusion off",
          trial.engine, problem, trial.failure);
  }
}

Arena InstructionTuner::make_room(const Program& program, const Instruction& instruction,
                                  std::size_t workspace_bytes) {
  room_ = {};
  room_.offsets.resize(program.buffers.size());
  for (const BufferUse& use : instruction.uses()) {
    room_.offsets[use.buffer] = room_.arena_bytes;
    room_.arena_bytes += aligned(program.buffers[use.buffer].bytes);
  }
  room_.workspace_offsets.fill(room_.arena_bytes);
  room_.arena_bytes += aligned(workspace_bytes + 1);
  if (room_.arena_bytes > memory_bytes_) {
    memory_.reset();
    memory_ = allocate_device(room_.arena_bytes);
    memory_bytes_ = room_.arena_bytes;
  }
  Arena room(memory_.get(), room_);
  fill_operands(program, instruction, room, device_.stream);
  return room;
}

}  // namespace plumb::cuda
