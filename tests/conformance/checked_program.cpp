#include "tests/conformance/checked_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "tests/conformance/element_bytes.h"
#include "tests/conformance/hand_made.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

constexpr std::size_t kAlignment = 256, kGuardBytes = 256;
constexpr std::byte kGuard{0xA5}, kUnwritten{0xFF};

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t elements_of(const Buffer& buffer) {
  std::int64_t count = 1;
  for (std::int64_t dim : buffer.dims) count *= dim;
  return static_cast<std::size_t>(count);
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

double largest_of(DType dtype) {
  return dtype == DType::f16 ? 65504 : 0x1.FEp127;
}

// The least distance between numbers of the dtype.
double subnormal_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-24 : 1e-36;  // exponentials end a little earlier than numbers
}

// [n, c, h, w] of a dense layer's weight and its relatives, as the device counts the elements of an image.
std::vector<std::int64_t> public_dims(const Graph& graph, const Program& program, BufferId id) {
  for (ParameterId p = 0; p < program.tensors.parameters.size(); ++p) {
    const ParameterBuffers& held = program.tensors.parameters[p];
    if (id != held.master && id != held.momentum && id != held.gradient &&
        !std::ranges::count(held.copies, id))
      continue;
    for (const Op& op : graph.ops)
      if (const Dense* dense = std::get_if<Dense>(&op); dense && dense->weight == p) {
        const Shape& in = graph.values[dense->in].shape;
        return {graph.parameters[p].dims[0], in.c, in.h, in.w};
      }
  }
  return program.buffers[id].dims;
}

}  // namespace

CheckedProgram::CheckedProgram(Device& device, Graph graph, const UpdateRule& rule, Program program)
    : device_(device),
      graph_(std::move(graph)),
      rule_(rule),
      program_(std::move(program)),
      first_buffer_(graph_.parameters.size()),
      held_(program_.buffers.size()),
      reference_(graph_, rule_, program_, device.limits().kind) {
  const std::size_t parameters = program_.tensors.parameters.size();
  if (parameters != first_buffer_) throw std::logic_error("a Program of another Graph");
  for (BufferId id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    graph_.parameters.push_back(
        {.name = buffer.name, .dims = public_dims(graph_, program_, id), .trained = false});
  }
  for (BufferId id = 0; id < program_.buffers.size(); ++id)
    program_.tensors.parameters.push_back({.master = id});
  device_.prepare(graph_, rule_, program_);
  lay_out();
  device_.bind(program_, plan_);
  fill();
}

CheckedProgram::~CheckedProgram() {
  for (const auto& [offset, bytes] : guards_) {
    const std::vector<std::byte> guard = download(offset, bytes);
    EXPECT_TRUE(std::ranges::all_of(guard, [](std::byte byte) { return byte == kGuard; }))
        << "something wrote behind a buffer, at byte " << offset << " of the arena";
  }
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (BufferId id = 0; id < held_.size(); ++id)
    if (!held_[id].empty() && id != program_.tensors.state) {
      EXPECT_TRUE(std::ranges::equal(read(id), held_[id], same))
          << program_.buffers[id].name << " changed behind the last instruction that writes it";
    }
}

// Every buffer has a place of its own, views but inside their roots.
void CheckedProgram::lay_out() {
  std::size_t end = 0;
  const auto take = [&](std::size_t bytes) {
    const std::size_t offset = end;
    guards_.emplace_back(offset + bytes, aligned(bytes) + kGuardBytes - bytes);
    end = offset + aligned(bytes) + kGuardBytes;
    return offset;
  };
  plan_.offsets.resize(program_.buffers.size());
  for (BufferId id = 0; id < program_.buffers.size(); ++id)
    if (!program_.buffers[id].view) plan_.offsets[id] = take(program_.buffers[id].bytes);
  for (BufferId id = 0; id < program_.buffers.size(); ++id)
    if (const std::optional<View>& view = program_.buffers[id].view)
      plan_.offsets[id] = plan_.offsets[view->root] + view->offset;
  for (const Instruction& instruction : program_.instructions) {
    std::size_t& most = plan_.workspace_bytes[static_cast<std::size_t>(instruction.lane)];
    most = std::max(most, instruction.workspace_bytes);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    plan_.workspace_offsets[lane] = take(plan_.workspace_bytes[lane]);
  plan_.arena_bytes = end;
}

void CheckedProgram::fill() {
  std::vector<std::byte> bytes(plan_.arena_bytes, kUnwritten);
  const auto set = [&](std::size_t offset, std::size_t count, std::byte value) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, value);
  };
  for (const auto& [offset, count] : guards_) set(offset, count, kGuard);
  // Blocked layouts of a CPU begin with zeros in their padding.
  for (BufferId id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (!buffer.view &&
        (buffer.persistent || device_.limits().kind == DeviceKind::cpu || id == program_.tensors.state))
      set(plan_.offsets[id], buffer.bytes, std::byte{0});
  }
  upload(0, bytes);
  for (BufferId id = 0; id < program_.buffers.size(); ++id)
    if (program_.buffers[root_of(program_, id)].persistent) held_[id] = read(id);
}

std::vector<std::byte> CheckedProgram::download(std::size_t offset, std::size_t bytes) {
  const std::byte* from = device_.data(0) - plan_.offsets[0] + offset;
  HostStaging* staging = device_.host_staging();
  if (staging == nullptr) return {from, from + bytes};
  const std::shared_ptr<std::byte> pinned = staging->allocate_pinned(std::max<std::size_t>(bytes, 1));
  if (bytes > 0) staging->copy(pinned.get(), from, bytes, Lane::compute);
  device_.synchronize();
  return {pinned.get(), pinned.get() + bytes};
}

void CheckedProgram::upload(std::size_t offset, const std::vector<std::byte>& bytes) {
  std::byte* into = device_.data(0) - plan_.offsets[0] + offset;
  HostStaging* staging = device_.host_staging();
  if (staging == nullptr) {
    std::ranges::copy(bytes, into);
    return;
  }
  const std::shared_ptr<std::byte> pinned = staging->allocate_pinned(std::max<std::size_t>(bytes.size(), 1));
  std::ranges::copy(bytes, pinned.get());
  if (!bytes.empty()) staging->copy(into, pinned.get(), bytes.size(), Lane::compute);
  device_.synchronize();
}

// Whether the device converts the buffer: it is of floats, and on a CPU has a layout, on a GPU no padded
// rows.
bool CheckedProgram::holds_floats(BufferId id) const {
  const Buffer& buffer = program_.buffers[id];
  if (!is_float(buffer.dtype)) return false;
  if (device_.limits().kind == DeviceKind::cpu) return !buffer.layout.empty();
  return buffer.dims.size() != 2 || buffer.bytes == elements_of(buffer) * bytes_of(buffer.dtype);
}

Doubles CheckedProgram::read(BufferId id) {
  const Buffer& buffer = program_.buffers[id];
  const std::size_t count = elements_of(buffer);
  if (holds_floats(id)) {
    std::vector<float> values(count);
    device_.read_parameter(first_buffer_ + id, values);
    return {values.begin(), values.end()};
  }
  const std::vector<std::byte> bytes = download(plan_.offsets[id], buffer.bytes);
  if (buffer.dtype == DType::u8) {
    const bool is_nhwc = buffer.dims.size() == 4 && device_.limits().kind == DeviceKind::cuda;
    const Doubles stored = decoded<std::uint8_t>(bytes, is_nhwc ? count : buffer.bytes);
    if (!is_nhwc) return stored;
    const Shape shape{buffer.dims[0], buffer.dims[2], buffer.dims[3], buffer.dims[1]};
    Doubles values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = stored[nhwc_position(shape, i)];
    return values;
  }
  if (buffer.dtype == DType::i32) return decoded<std::int32_t>(bytes, count);
  if (buffer.dtype == DType::f32 && buffer.bytes == count * sizeof(float))
    return decoded<float>(bytes, count);
  // A matrix whose rows begin at multiples of 16 bytes.
  const auto rows = static_cast<std::size_t>(buffer.dims.at(0)),
             columns = static_cast<std::size_t>(buffer.dims.at(1));
  const std::size_t stride = buffer.bytes / bytes_of(buffer.dtype) / rows;
  Doubles all(rows * stride), values;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = number_at(bytes.data(), i, buffer.dtype);
  for (std::size_t i = 0; i < rows * columns; ++i) values.push_back(all[i / columns * stride + i % columns]);
  return values;
}

void CheckedProgram::write(BufferId id, const Doubles& values) {
  const Buffer& buffer = program_.buffers[id];
  if (holds_floats(id))
    device_.write_parameter(first_buffer_ + id, std::vector<float>(values.begin(), values.end()));
  else if (buffer.dtype == DType::u8)
    upload(plan_.offsets[id], encoded<std::uint8_t>(values, buffer.bytes));
  else if (buffer.dtype == DType::i32)
    upload(plan_.offsets[id], encoded<std::int32_t>(values, buffer.bytes));
  else
    write_rows(id, values);
  refresh(id);
}

// A CPU's plain floats, or a matrix whose rows begin at multiples of 16 bytes.
void CheckedProgram::write_rows(BufferId id, const Doubles& values) {
  const Buffer& buffer = program_.buffers[id];
  const std::size_t rows = buffer.bytes == values.size() * bytes_of(buffer.dtype)
                               ? 1
                               : static_cast<std::size_t>(buffer.dims.at(0));
  const std::size_t columns = values.size() / rows, stride = buffer.bytes / bytes_of(buffer.dtype) / rows;
  std::vector<std::byte> bytes(buffer.bytes);
  for (std::size_t i = 0; i < values.size(); ++i)
    set_number(bytes.data(), i / columns * stride + i % columns, buffer.dtype, values[i]);
  upload(plan_.offsets[id], bytes);
}

void CheckedProgram::refresh(BufferId written) {
  for (BufferId id = 0; id < program_.buffers.size(); ++id)
    if (id == written || (root_of(program_, id) == root_of(program_, written) && !held_[id].empty()))
      held_[id] = read(id);
}

void CheckedProgram::write(const TestTensors& tensors) {
  for (ParameterId p = 0; p < tensors.parameters.size(); ++p) {
    device_.write_parameter(p, tensors.parameters[p]);
    refresh(program_.tensors.parameters[p].master);
    for (BufferId copy : program_.tensors.parameters[p].copies) refresh(copy);
  }
  for (StatisticId s = 0; s < tensors.statistics.size(); ++s) {
    device_.write_statistic(s, tensors.statistics[s]);
    refresh(program_.tensors.statistics[s]);
  }
  const std::span<const float> images = tensors.images;
  const std::span<const std::int64_t> labels = tensors.labels;
  const std::size_t image = images.size() / labels.size();
  if (labels.size() > 1) device_.write_batch(1, images.subspan(image), labels.subspan(1));
  device_.write_batch(0, images.first(image), labels.first(1));
  refresh(program_.tensors.values[0]);
  refresh(program_.tensors.labels);
}

void CheckedProgram::write(const StepState& state) {
  device_.write_state(state);
}

void CheckedProgram::stage(const std::vector<std::uint8_t>& pixels, const std::vector<std::int32_t>& labels) {
  device_.stage_batch(pixels, labels);
  device_.synchronize();
  refresh(program_.tensors.staged_images);
  refresh(program_.tensors.staged_labels);
}

StepState CheckedProgram::state() {
  StepState state;
  const std::vector<std::byte> bytes = download(plan_.offsets[program_.tensors.state], sizeof state);
  std::memcpy(static_cast<void*>(&state), bytes.data(), sizeof state);
  return state;
}

void CheckedProgram::run(InstructionId id) {
  const Instruction& instruction = program_.instructions.at(id);
  if (instruction.run) instruction.run();
  device_.synchronize();
  for (const BufferUse& use : instruction.uses())
    if (use.writes() && use.buffer != program_.tensors.state)
      held_[use.buffer].assign(1, 0), refresh(use.buffer);
}

void CheckedProgram::check(InstructionId id) {
  const Instruction& instruction = program_.instructions.at(id);
  if (const auto* collective = instruction.as<Collective>()) return meet_other_ranks(*collective);
  if (!instruction.run) return;
  SCOPED_TRACE(instruction.name + " (" + std::string(instruction.kind()) + " by " + instruction.engine + ")");
  for (const BufferUse& use : instruction.uses())
    if (use.reads() && use.buffer != program_.tensors.state) {
      ASSERT_FALSE(held_[use.buffer].empty()) << use.operand << " was never written";
    }
  Operands before(held_.size());
  for (const BufferUse& use : instruction.uses()) before[use.buffer] = held_[use.buffer];
  const StepState state = this->state();
  run(id);
  const Results results = reference_.run(instruction, before, held_, state);
  for (const BufferUse& use : instruction.uses()) {
    if (!use.writes() || use.buffer == program_.tensors.state) continue;
    const auto expected = results.find(use.buffer);
    if (expected == results.end())
      ADD_FAILURE() << "no reference for " << use.operand;
    else
      expect(use.operand, use.buffer, expected->second);
  }
  if (const auto* advance = instruction.as<AdvanceState>()) {
    const StepState next = reference_.next_state(state,
                                                 advance->overflow && before[*advance->overflow].at(0) != 0),
                    found = this->state();
    EXPECT_EQ(found.iteration, next.iteration);
    EXPECT_EQ(found.loss_scale, next.loss_scale);
    EXPECT_EQ(found.clean_steps, next.clean_steps);
  }
}

void CheckedProgram::expect(std::string_view operand, BufferId id, const Expected& expected) const {
  const Buffer& buffer = program_.buffers[id];
  const Doubles& made = held_[id];
  ASSERT_EQ(made.size(), expected.values.size()) << operand;
  const auto slack_of = [&](std::size_t i) { return expected.slack.empty() ? 0 : expected.slack[i]; };
  const auto bound_of = [&](std::size_t i) {
    if (!is_float(buffer.dtype)) return slack_of(i);
    return slack_of(i) + 1.01 * unit_roundoff(buffer.dtype) * std::abs(expected.values[i]) +
           subnormal_of(buffer.dtype);
  };
  const auto is_right = [&](std::size_t i) {
    const double wanted = expected.values[i];
    if (std::isnan(wanted)) return std::isnan(made[i]);
    return made[i] == wanted || std::abs(made[i] - wanted) <= bound_of(i) ||
           (std::isinf(made[i]) && std::signbit(made[i]) == std::signbit(wanted) &&
            std::abs(wanted) + slack_of(i) >= largest_of(buffer.dtype));
  };
  std::size_t wrong = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong)
  for (std::size_t i = 0; i < made.size(); ++i) wrong += !is_right(i);
  for (std::size_t i = 0, named = 0; i < made.size() && named < std::min<std::size_t>(wrong, 3); ++i)
    if (!is_right(i)) {
      ADD_FAILURE() << operand << "[" << i << "] is " << made[i] << ", not " << expected.values[i] << " +- "
                    << bound_of(i);
      ++named;
    }
  EXPECT_EQ(wrong, 0U) << "of " << made.size() << " elements of " << operand << " in "
                       << name_of(buffer.dtype);
}

// Any numbers do: instructions are held against their own operands.
void CheckedProgram::meet_other_ranks(const Collective& collective) {
  const BufferId id = collective.buffer;
  Doubles values = read(id);
  const Doubles others = normal_values(DType::f32, values.size(), ++collectives_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double other = std::abs(others[i]);
    if (collective.dtype == DType::i32)
      values[i] =
          values[i] < 0 ? std::floor(8 * other) : values[i];  // labels of which only ours were written
    else if (std::isinf(values[i]))                           // the maximum of no class
      values[i] = others[i];
    else if (collective.kind == Collective::Kind::allreduce_max ||
             collective.kind == Collective::Kind::allreduce_sum)
      values[i] += other;
    else if (std::isnan(values[i]))
      values[i] = others[i] / 4;
  }
  for (BufferId part = 0; part < held_.size(); ++part)
    if (root_of(program_, part) == root_of(program_, id)) held_[part].assign(1, 0);
  write(id, values);
}

void CheckedProgram::check_step() {
  const std::uint64_t iteration = state().iteration;
  for (InstructionId id = 0; id < program_.instructions.size(); ++id) {
    check(id);
    if (testing::Test::HasFatalFailure()) return;
  }
  const std::optional<IterationMetrics>& wanted = reference_.metrics();
  if (!wanted) return;
  const IterationMetrics found = device_.metrics(iteration);
  EXPECT_NEAR(found.loss, wanted->loss, 1e-5 * std::max(1.0, std::abs(wanted->loss)));
  EXPECT_EQ(found.top1, wanted->top1);
  EXPECT_EQ(found.top5, wanted->top5);
}

}  // namespace plumb
