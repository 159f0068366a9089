#include "kernels/device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "kernels/cuda/binding.h"
#include "kernels/cuda/instruction_tuner.h"
#include "kernels/cuda/own/optimizer.h"
#include "kernels/cuda/plan/blocks.h"
#include "kernels/cuda/plan/gpu_choice.h"
#include "kernels/cuda/runtime/lanes.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/tensor_layout.h"
#include "kernels/cuda/tuning_cache.h"
#include "kernels/prepared_instructions.h"
#include "kernels/program/lowering.h"

namespace plumb::cuda {
namespace {

// Kernels index images by a grid's second or third dimension, which has this limit. A search for the largest
// batch treats it as out of memory.
void require_grid_for(std::int64_t images) {
  if (images > kMostBlocksBeside)
    throw Error(ExitCode::out_of_memory,
                "--bs {} is more than the {} images that a GPU can process at once; lower --bs", images,
                kMostBlocksBeside);
}

class CudaDevice final : public Device, HostStaging, StepCapture {
 public:
  explicit CudaDevice(const DeviceOptions& options)
      : gpu_(select_gpu(options.local_rank)),
        limits_(limits_of(gpu_.properties)),
        deterministic_(options.deterministic),
        products_(make_gemm_engine()),
        convolutions_(with_other_candidates(make_conv_engine({.deterministic = deterministic_}), products_,
                                            gpu_.properties.multiprocessors)),
        records_(cuda::allocate_pinned(kMetricsKept * sizeof(IterationRecord))) {
    std::memset(records_.get(), 0, kMetricsKept * sizeof(IterationRecord));
  }

  const DeviceLimits& limits() const override { return limits_; }
  std::string description() const override { return gpu_.description; }
  std::string unique_id() const override { return gpu_.uuid; }

  Tuning tune(const Graph& graph, const UpdateRule& rule, const DescribeOptions& options,
              const TuningOptions& how) override {
    require_grid_for(graph.batch());
    TuningCache cache(how.time_engines ? tuning_cache_folder() : "", tuning_environment());
    InstructionTuner tuner(engines(), graph, rule, how, cache);
    Tuning tuning = tuner.tune(options, limits_);
    tuning.remarks = cache.remarks();
    return tuning;
  }

  void prepare(const Graph& graph, const UpdateRule& rule, Program& program) override {
    require_grid_for(graph.batch());
    graph_ = graph;
    rule_ = rule;
    tensors_ = program.tensors;
    Context context{engines(), graph_, rule_, program};
    prepared_.prepare(program,
                      [&](Instruction& instruction) { return prepare_instruction(context, instruction); });
  }

  void bind(Program& program, const MemoryPlan& plan) override {
    Context context{engines(), graph_, rule_, program};
    prepared_.prepare_added(
        program, [&](Instruction& instruction) { return prepare_instruction(context, instruction); });
    buffers_ = program.buffers;
    plan_ = plan;
    allocate(plan.arena_bytes);
    prepared_.bind(program, arena_);
    synchronize();
  }

  void write_parameter(ParameterId parameter, std::span<const float> values) override {
    const ParameterBuffers& held = tensors_.parameters.at(parameter);
    const std::vector<std::int64_t> dims = layout_dims(graph_, parameter);
    upload(held.master, values, dims);
    for (BufferId copy : held.copies) upload(copy, values, dims);
  }
  void write_rows(ParameterId parameter, std::int64_t first_row, std::span<const float> rows) override {
    const ParameterBuffers& held = tensors_.parameters.at(parameter);
    const std::int64_t columns = graph_.parameters[parameter].dims[1];
    const auto at = [&](BufferId id) {
      return arena_.data(id) + static_cast<std::size_t>(first_row * columns) * bytes_of(buffers_[id].dtype);
    };
    upload(at(held.master), std::as_bytes(rows));
    for (BufferId copy : held.copies) {
      Buffer part = buffers_[copy];
      part.bytes = rows.size() * bytes_of(part.dtype);
      upload(at(copy),
             to_device_layout(rows, {static_cast<std::int64_t>(rows.size()) / columns, columns}, part));
    }
  }
  void read_parameter(ParameterId parameter, std::span<float> values) const override {
    download(tensors_.parameters.at(parameter).master, values, layout_dims(graph_, parameter));
  }
  void read_gradient(ParameterId parameter, std::span<float> values) const override {
    const BufferId gradient = tensors_.parameters.at(parameter).gradient;
    if (const auto sampled = tensors_.sampled_rows.find(parameter); sampled != tensors_.sampled_rows.end())
      download_rows(gradient, sampled->second, values, graph_.parameters[parameter].dims);
    else
      download(gradient, values, layout_dims(graph_, parameter));
  }
  void write_statistic(StatisticId statistic, std::span<const float> values) override {
    upload(tensors_.statistics.at(statistic), values, {static_cast<std::int64_t>(values.size())});
  }
  void read_statistic(StatisticId statistic, std::span<float> values) const override {
    download(tensors_.statistics.at(statistic), values, {static_cast<std::int64_t>(values.size())});
  }

  void write_batch(std::int64_t first_image, std::span<const float> images,
                   std::span<const std::int64_t> labels) override {
    Shape part = graph_.values[0].shape;
    part.n = static_cast<std::int64_t>(labels.size());
    if (static_cast<std::int64_t>(images.size()) != part.elements() || first_image + part.n > graph_.batch())
      throw std::logic_error("batch of another size than its buffer");
    Buffer held = buffers_[tensors_.values[0]];
    const std::size_t image_bytes = held.bytes / static_cast<std::size_t>(graph_.batch());
    held.bytes = image_bytes * labels.size();
    const auto first = static_cast<std::size_t>(first_image);
    upload(arena_.data(tensors_.values[0]) + first * image_bytes, to_device_layout(images, nchw(part), held));
    const std::vector<std::int32_t> narrow(labels.begin(), labels.end());
    upload(arena_.data(tensors_.labels) + first * sizeof(std::int32_t), std::as_bytes(std::span(narrow)));
  }

  // Copies to the half that the next iteration's parity picks, once the iteration before the last, which read
  // that half, has ended.
  void stage_batch(std::span<const std::uint8_t> pixels, std::span<const std::int32_t> labels) override {
    if (static_cast<std::int64_t>(pixels.size()) != graph_.values[0].shape.elements())
      throw std::logic_error("batch of another size than its buffer");
    const std::size_t half = batches_ % 2;
    if (!staged_[half])
      staged_[half] = make_event();
    else
      check(cudaEventSynchronize(staged_[half].get()));  // of two batches ago: finished long ago
    const cudaStream_t input = lanes_.stream(Lane::input);
    clock_.wait_for_iteration_before_last(input);
    const auto enqueue = [&](BufferId staging, auto values) {
      check(cudaMemcpyAsync(arena_.data(staging) + half * values.size_bytes(), values.data(),
                            values.size_bytes(), cudaMemcpyDefault, input));
    };
    enqueue(tensors_.staged_images, pixels);
    enqueue(tensors_.staged_labels, labels);
    check(cudaEventRecord(staged_[half].get(), input));
    ++batches_;
  }

  void write_state(const StepState& step) override {
    const State state{.step = step};
    check(cudaMemcpyAsync(arena_.data(tensors_.state), &state, sizeof state, cudaMemcpyHostToDevice,
                          compute()));
    synchronize();
    batches_ = step.iteration;
  }
  IterationMetrics metrics(std::uint64_t iteration) const override {
    const IterationRecord& record = records()[iteration % kMetricsKept];
    return {.loss = record.loss,
            .top1 = record.top1,
            .top5 = record.top5,
            .loss_scale = record.loss_scale,
            .skipped = record.skipped != 0,
            .exposed_seconds = 1e-9 * static_cast<double>(record.exposed_ns),
            .data_wait_seconds = 1e-9 * static_cast<double>(record.data_wait_ns)};
  }

  std::byte* data(BufferId buffer) override { return arena_.data(buffer); }
  std::size_t peak_bytes() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total));
    peak_bytes_ = std::max(peak_bytes_, gpu_.free_bytes > free ? gpu_.free_bytes - free : 0);
    return peak_bytes_;
  }

  void signal(InstructionId instruction, Lane lane) override { lanes_.signal(instruction, lane); }
  void wait(InstructionId instruction, Lane lane) override { lanes_.wait(instruction, lane); }
  void* queue(Lane lane) override { return lanes_.stream(lane); }
  void synchronize() override { lanes_.synchronize(); }

  HostStaging* host_staging() override { return this; }
  std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes) override {
    return {cuda::allocate_pinned(bytes)};
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, Lane lane) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, lanes_.stream(lane)));
  }
  std::size_t mark(Lane lane) override { return lanes_.mark(lane); }
  bool reached(std::size_t mark) override { return lanes_.reached(mark); }

  StepCapture* step_capture() override { return this; }
  void capture(const std::function<void()>& enqueue) override { graph_exec_ = lanes_.capture(enqueue); }
  void replay() override {
    if (!graph_exec_) throw std::logic_error("nothing was captured");
    check(cudaGraphLaunch(graph_exec_.get(), compute()));
  }
  void drop_capture() noexcept override {
    lanes_.drain();
    graph_exec_.reset();
  }

  void start_clock() override { clock_.start(lanes_); }
  void end_iteration() override {
    lanes_.join();
    clock_.end_iteration(lanes_);
  }
  std::optional<double> next_end() override { return clock_.next_end(); }
  void stamp(InstructionId instruction, Lane lane, bool after) override {
    clock_.stamp(lanes_, instruction, lane, after);
  }
  std::vector<InstructionTime> step_times() override {
    synchronize();
    return clock_.step_times();
  }
  void stamp_wait(Wait what, bool after) override {
    launch_stamp_wait(arena_.as<State>(tensors_.state), what, after, compute());
  }

 private:
  cudaStream_t compute() const { return lanes_.stream(Lane::compute); }
  IterationRecord* records() const { return reinterpret_cast<IterationRecord*>(records_.get()); }

  // Everything that the times depend on.
  std::string tuning_environment() const {
    return fmt::format("{}, {}, own kernels {}{}", gpu_.properties.name, convolutions_.library,
                       kOwnKernelsVersion, deterministic_ ? ", sums in a fixed order" : "");
  }

  Engines engines() const { return {convolutions_, products_, compute(), records()}; }

  void allocate(std::size_t bytes) {
    memory_.reset();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total));
    try {
      memory_ = allocate_device(bytes);
    } catch (const Error& error) {
      if (error.code() != ExitCode::out_of_memory) throw;
      throw Error(ExitCode::out_of_memory,
                  "{} has {} bytes free, and this run needs {}; lower --bs, or end other programs on the "
                  "GPU",
                  gpu_.properties.name, free, bytes);
    }
    arena_ = Arena(memory_.get(), plan_);
    // Padding and the gaps between gradients stay zero.
    check(cudaMemsetAsync(memory_.get(), 0, bytes, compute()));
    synchronize();
  }

  void upload(BufferId buffer, std::span<const float> values, const std::vector<std::int64_t>& dims) {
    upload(arena_.data(buffer), to_device_layout(values, dims, buffers_[buffer]));
  }
  void upload(std::byte* to, std::span<const std::byte> held) {
    check(cudaMemcpyAsync(to, held.data(), held.size(), cudaMemcpyHostToDevice, compute()));
    check(cudaStreamSynchronize(compute()));
  }
  void download(BufferId buffer, std::span<float> values, const std::vector<std::int64_t>& dims) const {
    lanes_.synchronize();
    from_device_layout(download<std::byte>(buffer), dims, buffers_[buffer], values);
  }
  template <typename T>
  std::vector<T> download(BufferId buffer) const {
    std::vector<T> values(buffers_[buffer].bytes / sizeof(T));
    check(cudaMemcpyAsync(values.data(), arena_.data(buffer), buffers_[buffer].bytes, cudaMemcpyDeviceToHost,
                          compute()));
    check(cudaStreamSynchronize(compute()));
    return values;
  }

  // Scatters the sampled rows' gradients back to their classes; other rows are 0.
  void download_rows(BufferId gradient, const SampledRows& sampled, std::span<float> values,
                     const std::vector<std::int64_t>& dims) const {
    const Buffer& held = buffers_[gradient];
    const auto row_elements = static_cast<std::size_t>(dims[1]);
    std::vector<float> rows(static_cast<std::size_t>(held.dims[0]) * row_elements);
    download(gradient, rows, held.dims);
    const std::vector<std::int32_t> places = download<std::int32_t>(sampled.samples);
    const std::int32_t count = download<std::int32_t>(sampled.count).front();
    std::fill(values.begin(), values.end(), 0.0F);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      std::copy_n(&rows[i * row_elements], row_elements,
                  &values[static_cast<std::size_t>(places[i]) * row_elements]);
  }

  SelectedGpu gpu_;
  DeviceLimits limits_;
  Lanes lanes_;
  bool deterministic_;
  GemmEngine products_;
  ConvEngine convolutions_;
  PinnedMemory records_;
  Graph graph_;
  UpdateRule rule_;
  Tensors tensors_;
  PreparedInstructions prepared_;
  std::vector<Buffer> buffers_;
  MemoryPlan plan_;
  DeviceMemory memory_;
  Arena arena_;
  Clock clock_;
  ExecutableGraph graph_exec_;
  std::uint64_t batches_ = 0;    // staged so far; also the iteration of the next one
  std::array<Event, 2> staged_;  // the half's last batch has been copied
  mutable std::size_t peak_bytes_ = 0;
};

}  // namespace

std::vector<std::string> library_versions(bool load) {
  int runtime = 0;  // 13020: 13.2
  cudaRuntimeGetVersion(&runtime);
  std::vector<std::string> versions{"CUDA " + version_text(runtime), conv_library()};
  if (has_gemm_library(load)) versions.push_back(gemm_library());
  return versions;
}

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  return std::make_unique<CudaDevice>(options);
}

}  // namespace plumb::cuda
