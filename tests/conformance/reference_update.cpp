// Batches of bytes, sums and casts of gradients, updates, and the state.
#include <algorithm>

#include "tests/conformance/reference_loops.h"
#include "tests/conformance/reference_run.h"

namespace plumb {

void Run::of(const PackBatch& pack) {
  const Shape& images = shape(0);
  const auto elements = static_cast<std::size_t>(images.elements()),
             batch = static_cast<std::size_t>(images.n);
  const std::size_t parts = in(pack.staged_images).size() / elements, part = state_.iteration % parts;
  Sums values(elements);
  for_each_element(images, [&](auto n, auto c, auto y, auto x) {
    const auto pixel = static_cast<std::size_t>(((n * images.h + y) * images.w + x) * images.c + c);
    const std::size_t into = at(images, n, c, y, x);
    values.add(into, in(pack.staged_images)[part * elements + pixel] *
                         static_cast<double>(pack.normalization.factor[c]));
    values.add(into, static_cast<double>(pack.normalization.offset[c]));
  });
  expect(pack.images, std::move(values).expected(2 * 0x1p-24));
  const auto first = in(pack.staged_labels).begin() + static_cast<std::ptrdiff_t>(part * batch);
  expect(pack.labels, {{first, first + static_cast<std::ptrdiff_t>(batch)}});
}

void Run::of(const Accumulate& accumulate) {
  Doubles sum = in(accumulate.into);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += in(accumulate.from)[i];
  expect(accumulate.into, {std::move(sum), Doubles(in(accumulate.from).size(), 0x1p-40)});
}

void Run::of(const Cast& cast) {
  Doubles values = in(cast.from);
  for (double& value : values) value *= cast.scale;
  expect(cast.into, {std::move(values)});
}

void Run::of(const FindOverflow& search) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  const bool all = std::ranges::all_of(
      search.gradients, [&](BufferId gradient) { return std::ranges::all_of(in(gradient), is_finite); });
  expect(search.overflow, {{all ? 0.0 : 1.0}});
}

// torch.optim.SGD with dampening 0 (documentation of PyTorch 2), in element `element` of a parameter.
void Run::updated(BufferId master, BufferId momentum, std::size_t element, double gradient, bool decays,
                  Expected& masters, Expected& momenta) const {
  const UpdateRule& rule = reference_.rule_;
  const double weight = in(master)[element], before = rule.momentum * in(momentum)[element];
  const double scaled = gradient * state_.gradient_scale / state_.loss_scale,
               decay = decays ? rule.weight_decay * weight : 0;
  const double slope = scaled + decay, velocity = before + slope;
  const double step = rule.optimizer == Optimizer::nag ? slope + rule.momentum * velocity : velocity;
  const double magnitude = std::abs(scaled) + std::abs(decay) + std::abs(before);
  momenta.values[element] = velocity;
  momenta.slack[element] = 4 * 0x1p-24 * magnitude;
  masters.values[element] = weight - state_.learning_rate * step;
  masters.slack[element] = 0x1p-24 * (std::abs(weight) + 8 * state_.learning_rate * magnitude);
}

void Run::of(const Update& update) {
  const bool skips = update.overflow && in(*update.overflow)[0] != 0;
  for (const UpdatedParameter& one : update.parameters) {
    Expected masters{in(one.master), Doubles(in(one.master).size())},
        momenta{in(one.momentum), Doubles(in(one.momentum).size())};
    const bool decays = reference_.graph_.parameters[one.parameter].decays;
    for (std::size_t i = 0; i < masters.values.size() && !skips; ++i)
      updated(one.master, one.momentum, i, in(one.gradient)[i], decays, masters, momenta);
    for (BufferId copy : one.copies) skips ? unchanged(copy) : expect(copy, {made(one.master)});
    expect(one.master, std::move(masters));
    expect(one.momentum, std::move(momenta));
  }
}

void Run::of(const UpdateRows& update) {
  Expected masters{in(update.master), Doubles(in(update.master).size())},
      momenta{in(update.momentum), Doubles(in(update.momentum).size())};
  const bool decays = reference_.graph_.parameters[update.parameter].decays;
  const std::size_t columns = in(update.d_rows).size() / in(update.samples).size();
  const bool skips = update.overflow && in(*update.overflow)[0] != 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(in(update.sample_count)[0]) && !skips; ++k)
    for (std::size_t i = 0; i < columns; ++i)
      updated(update.master, update.momentum, static_cast<std::size_t>(in(update.samples)[k]) * columns + i,
              in(update.d_rows)[k * columns + i], decays, masters, momenta);
  expect(update.master, std::move(masters));
  expect(update.momentum, std::move(momenta));
}

StepState InstructionReference::next_state(const StepState& state, bool overflow) const {
  StepState next = state;
  ++next.iteration;
  if (rule_.loss_scaling.kind != LossScaling::Kind::dynamic) return next;
  next.clean_steps = overflow ? 0 : state.clean_steps + 1;
  if (overflow) next.loss_scale = std::max(state.loss_scale / 2, 1.0F);
  if (next.clean_steps < rule_.loss_scaling.growth_interval) return next;
  next.clean_steps = 0;
  next.loss_scale = std::min(state.loss_scale * 2, 0x1p24F);  // kernels/cuda/own/optimizer.h
  return next;
}

double unit_roundoff(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0;
}

// To nearest even, without subnormals of bf16.
double rounded(DType dtype, double value) {
  if (dtype == DType::f32) return static_cast<float>(value);
  const int bits = dtype == DType::f16 ? 11 : 8;
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  if (dtype == DType::f16) exponent = std::max(exponent, -13);
  const double unit = std::ldexp(1.0, exponent - bits);
  return std::nearbyint(value / unit) * unit;
}

Doubles rounded(DType dtype, Doubles values) {
  for (double& value : values) value = rounded(dtype, value);
  return values;
}

Results InstructionReference::run(const Instruction& instruction, const Operands& before,
                                  const Operands& after, const StepState& state) {
  return Run(*this, instruction, before, after, state).results();
}

}  // namespace plumb
