// Times the instructions of a Program on the current GPU, each alone: every engine for a convolution, and our
// own kernels that compete with fused engines.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/plan/fusion.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/tuning_cache.h"
#include "kernels/program/tuning.h"

namespace plumb::cuda {

// Times GPU work as in a training step: with operands in main memory, not in the L2 cache.
class ColdTimer {
 public:
  // Allocates four times the current GPU's L2 cache, to flush it by reading: writes would leave it full of
  // lines that the timed work must write back. Keeps the GPU busy for kWarmUpSeconds because an idle GPU's
  // clocks are low. Throws Error(out_of_memory).
  explicit ColdTimer(cudaStream_t stream);

  // Median seconds of the work that `enqueue` puts on the stream, by events, over at least kMinRuns and until
  // kEnoughSeconds or kMaxRuns, after one warm-up run; of one run if it takes kHopeless times `best`. Passes
  // on any Error thrown by enqueuing or running.
  double seconds(const std::function<void()>& enqueue, std::optional<double> best = {}) const;

  static constexpr int kMinRuns = 3, kMaxRuns = 11;
  static constexpr double kEnoughSeconds = 0.05, kWarmUpSeconds = 0.2, kHopeless = 2;

 private:
  double seconds_of_one(const std::function<void()>& enqueue) const;

  cudaStream_t stream_;
  std::int64_t flush_columns_ = 0;
  DeviceMemory flush_, sums_;
  Event begin_, end_;
};

class InstructionTuner {
 public:
  // graph, rule and cache must outlive the tuner.
  InstructionTuner(const Engines& device, const Graph& graph, const UpdateRule& rule,
                   const TuningOptions& how, TuningCache& cache);

  // Tries the instructions of the Graph's Programs with and without fused engines, then chooses layer by
  // layer. Throws Error(internal) naming an engine that left the GPU unusable, and Error(out_of_memory).
  Tuning tune(const DescribeOptions& options, const DeviceLimits& limits);

  // Key shared by instructions with the same work; empty for an instruction without a choice of engines and
  // without a competing fused engine.
  std::string problem_of(const Program& program, const Instruction& instruction) const;

 private:
  struct Work {
    const Program& program;
    const Instruction& instruction;
    std::string problem;
  };
  void try_all(const DescribeOptions& options, const DeviceLimits& limits);
  // The instruction's engines, best first; from the cache, or tried now. Empty if problem_of() is.
  const std::vector<EngineTrial>& trials_of(const Program& program, const Instruction& instruction);
  // Returns the cache's trials if their first engine still exists; else tries the engines.
  std::vector<EngineTrial> try_convolution(const Work& work);
  // `best`: seconds of the fastest engine so far.
  EngineTrial try_plan(const ConvPlan& plan, const Work& work, std::optional<double> best);
  // Our own kernel, or a library's first product.
  EngineTrial try_own_kernel(const Work& work);
  // Times the engine and records its seconds, or why it failed, in the trial. Throws Error(internal) with the
  // engine's name if it left the GPU unusable.
  void run(EngineTrial& trial, const std::string& problem, const std::function<void()>& enqueue,
           std::optional<double> best = {}) const;
  // Memory full of random numbers for the buffers and the workspace of one instruction: less than the step
  // needs. Throws Error(out_of_memory).
  Arena make_room(const Program& program, const Instruction& instruction, std::size_t workspace_bytes);

  Engines device_;
  const Graph& graph_;
  const UpdateRule& rule_;
  TuningOptions how_;
  TuningCache& cache_;
  std::optional<ColdTimer> timer_;  // if engines are timed
  std::map<std::string, std::vector<EngineTrial>> trials_;
  MemoryPlan room_;  // of the instruction being tried
  DeviceMemory memory_;
  std::size_t memory_bytes_ = 0;
};

// Fills the operands with random numbers of either sign in [0.5, 1), and those whose role is a state with
// zeros. Zeros elsewhere would draw less power than a step's numbers, and so be multiplied at higher clocks.
void fill_operands(const Program& program, const Instruction& instruction, const Arena& arena,
                   cudaStream_t stream);

}  // namespace plumb::cuda
