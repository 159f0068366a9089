#include "kernels/device.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/text.h"
#include "kernels/cpu/binding.h"
#include "kernels/cpu/element_types.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/threads.h"
#include "kernels/prepared_instructions.h"

namespace plumb::cpu {
namespace {

constexpr double kAssumedBytesPerSecond = 25e9;  // two DDR4-3200 channels at about half of their 51.2 GB/s
constexpr double kAssumedHertz = 2.5e9;          // if cpuinfo has no clock

double flops_per_cycle() {
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
  return 8;
}

bool has(dnnl::cpu_isa isa) {
  const auto all = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (all & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
}

// Floats per vector in our Winograd loops for 3x3 convolutions: 16 with AVX-512, 8 with AVX2, else 0.
// DNNL_MAX_CPU_ISA limits them as it limits oneDNN.
int winograd_lanes() {
  if (has(dnnl::cpu_isa::avx512_core)) return 16;
  return has(dnnl::cpu_isa::avx2) ? 8 : 0;
}

// How many times as fast as in fp32 products are in bf16, at their peak, by instructions of this CPU that
// oneDNN uses; 0 without any. AVX512_BF16 multiplies pairs of halves (VDPBF16PS), AMX reaches 1,024 in place
// of 64 FLOPs per cycle and core (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on
// AMX).
double bf16_rate() {
  if (has(dnnl::cpu_isa::avx512_core_amx)) return 16;
  return has(dnnl::cpu_isa::avx512_core_bf16) ? 2 : 0;
}

// Limits of `threads` threads of this CPU. Peak = threads x clock (cpuinfo) x FLOPs per cycle of the widest
// vectors (two fused multiply-adds of 512 or 256 bits). Memory bandwidth is assumed; no interface reports it.
// Both are rough, as `source` says. memory_bytes: available_bytes() now.
DeviceLimits this_cpu(int threads) {
  const double hertz = number_or(proc_value("/proc/cpuinfo", "cpu MHz"), kAssumedHertz / 1e6) * 1e6;
  std::string name = proc_value("/proc/cpuinfo", "model name");
  return {.name = name.empty() ? "cpu" : name,
          .kind = DeviceKind::cpu,
          .flops_per_second = {{Precision::fp32, threads * hertz * flops_per_cycle()}},
          .bytes_per_second = kAssumedBytesPerSecond,
          .memory_bytes = available_bytes(),
          .in_host_memory = true,
          .threads = threads,
          .source = "threads x clock x vector width; bandwidth assumed"};
}

// oneDNN generates code when primitives are created and in its first matrix product, and crashes if it gets
// no memory. The arena must leave several times that amount free.
constexpr std::size_t kRoomForCode = std::size_t{64} << 20;

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* address) const { munmap(address, bytes); }
};
using ArenaMemory = std::unique_ptr<std::byte, Unmap>;

// Anonymous memory, zeroed by the kernel, so padding of blocked layouts starts as zeros.
ArenaMemory map_arena(std::size_t bytes) {
  void* address =
      mmap(nullptr, bytes + kRoomForCode, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    throw Error(ExitCode::out_of_memory, "this host refuses {} bytes for the arena; use a smaller --bs",
                bytes);
  auto* base = static_cast<std::byte*>(address);
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t kept = (bytes + page - 1) / page * page;
  munmap(base + kept, bytes + kRoomForCode - kept);
  madvise(address, bytes, MADV_HUGEPAGE);
  return ArenaMemory(base, {bytes});
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options)
      : threads_(options.threads > 0 ? options.threads : available_cpus()),
        limits_(this_cpu(threads_)),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_) {
    use_threads(threads_);
    limits_.winograd_lanes = winograd_lanes();
    if (const double rate = bf16_rate(); rate > 0)
      limits_.flops_per_second[Precision::bf16] = rate * limits_.flops_per_second[Precision::fp32];
  }

  const DeviceLimits& limits() const override { return limits_; }
  std::string description() const override {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("{}, {}, oneDNN {}.{}.{}", limits_.name, counted(threads_, "thread"), version->major,
                       version->minor, version->patch);
  }

  void prepare(const Graph& graph, const UpdateRule& rule, Program& program) override {
    graph_ = graph;
    rule_ = rule;
    tensors_ = program.tensors;
    layouts_.assign(program.buffers.size(), std::nullopt);
    Context context = context_of(program);
    // Later instructions build on earlier layouts: first the images, then instruction by instruction.
    const BufferId images = tensors_.values[0];
    context.settle(images, plain_layout(nchw(graph_.values[0].shape), context.dtype(images)));
    holds_bf16_images_ = context.dtype(images) == DType::bf16;
    prepared_.prepare(program,
                      [&](Instruction& instruction) { return prepare_instruction(context, instruction); });
  }

  void bind(Program& program, const MemoryPlan& plan) override {
    layouts_.resize(program.buffers.size());
    Context context = context_of(program);
    prepared_.prepare_added(
        program, [&](Instruction& instruction) { return prepare_instruction(context, instruction); });
    plan_ = plan;
    memory_ = map_arena(plan.arena_bytes);
    arena_ = Arena(memory_.get(), plan_);
    *state() = State{};
    prepared_.bind(program, arena_);
  }

  void write_parameter(ParameterId parameter, std::span<const float> values) override {
    const ParameterBuffers& buffers = tensors_.parameters.at(parameter);
    write(buffers.master, values);
    for (BufferId copy : buffers.copies) write(copy, values);
  }
  void write_rows(ParameterId parameter, std::int64_t first_row, std::span<const float> rows) override {
    const std::int64_t first = first_row * graph_.parameters[parameter].dims[1];
    std::ranges::copy(rows, arena_.as(tensors_.parameters.at(parameter).master) + first);
  }
  void read_parameter(ParameterId parameter, std::span<float> values) const override {
    read(tensors_.parameters.at(parameter).master, values);
  }
  void read_gradient(ParameterId parameter, std::span<float> values) const override {
    const BufferId gradient = tensors_.parameters.at(parameter).gradient;
    const auto sampled = tensors_.sampled_rows.find(parameter);
    if (sampled == tensors_.sampled_rows.end()) return read(gradient, values);
    std::ranges::fill(values, 0.0f);  // rows outside the last sample
    const auto columns = graph_.parameters[parameter].dims[1];
    const auto* rows = arena_.as<const std::int32_t>(sampled->second.samples);
    const auto count = *arena_.as<const std::int32_t>(sampled->second.count);
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(arena_.as(gradient) + i * columns, columns, values.data() + rows[i] * columns);
  }
  void write_statistic(StatisticId statistic, std::span<const float> values) override {
    write(tensors_.statistics.at(statistic), values);
  }
  void read_statistic(StatisticId statistic, std::span<float> values) const override {
    read(tensors_.statistics.at(statistic), values);
  }

  void write_batch(std::int64_t first_image, std::span<const float> images,
                   std::span<const std::int64_t> labels) override {
    // prepare() made this layout row-major: no reorder or primitive creation inside the timed window.
    Shape part = graph_.values[0].shape;
    part.n = static_cast<std::int64_t>(labels.size());
    if (static_cast<std::int64_t>(images.size()) != part.elements() || first_image + part.n > graph_.batch())
      throw std::logic_error("batch of another size than its buffer");
    const std::int64_t first = first_image * part.h * part.w * part.c;
    if (holds_bf16_images_)
      std::ranges::transform(images, arena_.as<Bf16>(tensors_.values[0]) + first, from_float<Bf16>);
    else
      std::ranges::copy(images, arena_.as(tensors_.values[0]) + first);
    std::ranges::copy(labels, arena_.as<std::int32_t>(tensors_.labels) + first_image);  // narrowed
  }
  void stage_batch(std::span<const std::uint8_t> pixels, std::span<const std::int32_t> labels) override {
    if (static_cast<std::int64_t>(pixels.size()) != graph_.values[0].shape.elements())
      throw std::logic_error("batch of another size than its buffer");
    std::memcpy(arena_.data(tensors_.staged_images), pixels.data(), pixels.size());
    std::ranges::copy(labels, arena_.as<std::int32_t>(tensors_.staged_labels));
  }

  void write_state(const StepState& step) override { state()->step = step; }
  IterationMetrics metrics(std::uint64_t iteration) const override {
    return state()->metrics[iteration % kMetricsKept];
  }

  std::byte* data(BufferId buffer) override { return arena_.data(buffer); }

  void start_clock() override {
    clock_start_ = std::chrono::steady_clock::now();
    ends_.clear();
  }
  void end_iteration() override { ends_.push_back(clock_seconds()); }
  std::optional<double> next_end() override {
    if (ends_.empty()) return std::nullopt;
    const double end = ends_.front();
    ends_.erase(ends_.begin());
    return end;
  }
  void stamp(InstructionId instruction, Lane, bool after) override {
    if (!after) {
      step_times_.push_back({.instruction = instruction, .begin = clock_seconds()});
      return;
    }
    // Lanes interleave: the ending instruction is the latest one stamped with this id.
    const auto begun = std::ranges::find(step_times_.rbegin(), step_times_.rend(), instruction,
                                         &InstructionTime::instruction);
    if (begun == step_times_.rend()) throw std::logic_error("an instruction ends that never began");
    begun->end = clock_seconds();
  }
  std::vector<InstructionTime> step_times() override { return std::exchange(step_times_, {}); }

  std::size_t peak_bytes() const override {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  }

 private:
  Context context_of(Program& program) {
    return {.graph = graph_,
            .rule = rule_,
            .program = program,
            .engine = engine_,
            .stream = stream_,
            .limits = limits_,
            .layouts = layouts_};
  }

  double clock_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - clock_start_).count();
  }
  State* state() const { return arena_.as<State>(tensors_.state); }

  void reorder(const dnnl::memory& from, const dnnl::memory& to) const {
    dnnl::stream stream = stream_;
    dnnl::reorder(from, to).execute(stream, const_cast<dnnl::memory&>(from), const_cast<dnnl::memory&>(to));
    stream.wait();
  }
  dnnl::memory held(BufferId buffer) const { return {*layouts_[buffer], engine_, arena_.data(buffer)}; }
  dnnl::memory plain(BufferId buffer, std::span<const float> values) const {
    const dnnl::memory::desc layout = plain_layout(dims_of(*layouts_[buffer]));
    if (layout.get_size() != values.size_bytes())
      throw std::logic_error("tensor of another size than its buffer");
    return {layout, engine_, const_cast<float*>(values.data())};
  }
  void write(BufferId buffer, std::span<const float> values) { reorder(plain(buffer, values), held(buffer)); }
  void read(BufferId buffer, std::span<float> values) const { reorder(held(buffer), plain(buffer, values)); }

  int threads_;
  DeviceLimits limits_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Graph graph_;
  UpdateRule rule_;
  Tensors tensors_;
  std::vector<std::optional<dnnl::memory::desc>> layouts_;
  PreparedInstructions prepared_;
  MemoryPlan plan_;
  bool holds_bf16_images_ = false;
  ArenaMemory memory_;
  Arena arena_;
  std::chrono::steady_clock::time_point clock_start_ = std::chrono::steady_clock::now();
  std::vector<double> ends_;  // seconds since clock_start_; usually one
  std::vector<InstructionTime> step_times_;
};

}  // namespace

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace plumb::cpu
