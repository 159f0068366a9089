// How steps of a Program become oneDNN primitives or loops of our own. Preparing makes every primitive and
// settles layouts and sizes; finishing, once the arena is there, attaches addresses.
#pragma once

#include <cstddef>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/state.h"
#include "kernels/device.h"
#include "kernels/lowering.h"
#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cpu {

// Addresses, known once the arena is allocated.
class Arena {
 public:
  Arena() = default;
  Arena(std::byte* base, const MemoryPlan& plan) : base_(base), plan_(&plan) {}
  std::byte* data(BufferId buffer) const { return base_ + plan_->offsets[buffer]; }
  float* floats(BufferId buffer) const { return reinterpret_cast<float*>(data(buffer)); }
  std::byte* workspace(Lane lane) const {
    return base_ + plan_->workspace_offsets[static_cast<std::size_t>(lane)];
  }

 private:
  std::byte* base_ = nullptr;
  const MemoryPlan* plan_ = nullptr;
};

using Finish = std::function<ComputeFn(const Arena&)>;

// What preparing reads and settles.
struct Context {
  const Graph& graph;
  const UpdateRule& rule;
  Program& program;
  dnnl::engine engine;
  dnnl::stream stream;
  const std::vector<ParameterBuffers>& parameters;          // by ParameterId
  const std::vector<BufferId>& values;                      // by ValueId
  std::vector<std::optional<dnnl::memory::desc>>& layouts;  // by BufferId; empty until somebody chose

  // The layout of a buffer; if nobody chose one yet, it becomes `wanted`, and the buffer takes its bytes.
  const dnnl::memory::desc& settle(BufferId buffer, const dnnl::memory::desc& wanted);
  // Elements that the device holds of an fp32 buffer, padding included.
  std::size_t floats(BufferId buffer) const { return program.buffers[buffer].bytes / sizeof(float); }
};

dnnl::primitive_attr user_scratchpad();
dnnl::memory::desc any_layout(const std::vector<std::int64_t>& dims);
dnnl::memory::desc plain_layout(const std::vector<std::int64_t>& dims);  // row-major

// Nothing where a layout of [n, c, h, w] or [n, c] has no such form.
std::optional<ChannelLayout> channel_layout(const dnnl::memory::desc& layout);

// One execution of a primitive, or of a loop of ours, with its operands. An operand that it wants in another
// layout than the buffer holds is reordered through the workspace, before or after.
class Call {
 public:
  // Given the operands' addresses, in the order in which they were added.
  using Body = std::function<ComputeFn(const std::vector<std::byte*>&)>;

  Call(Context& context, Step& step) : context_(context), step_(step) {}

  void input(int argument, BufferId buffer, const dnnl::memory::desc& wanted) {
    add(argument, buffer, wanted, true);
  }
  void output(int argument, BufferId buffer, const dnnl::memory::desc& made) {
    add(argument, buffer, made, false);
  }
  // An operand that no other step reads in another layout; the buffer takes at least its bytes.
  void raw(int argument, BufferId buffer, const dnnl::memory::desc& layout);
  void scratchpad(const dnnl::memory::desc& layout);

  // Both take note of the workspace that the step wants; the Call may go away afterwards.
  Finish finish(dnnl::primitive primitive);
  Finish finish(Body body);

 private:
  struct Operand {
    int argument = 0;
    BufferId buffer = 0;
    dnnl::memory::desc layout;  // as the primitive or loop wants it
    enum class Place { buffer, copied_in, copied_out, workspace } place = Place::buffer;
    std::size_t workspace_offset = 0;
    dnnl::memory::desc held;  // of a copied operand: as the buffer has it
    dnnl::reorder reorder;
  };
  void add(int argument, BufferId buffer, const dnnl::memory::desc& wanted, bool is_input);
  std::size_t take_workspace(std::size_t bytes);

  Context& context_;
  Step& step_;
  std::vector<Operand> operands_;
  std::size_t workspace_bytes_ = 0;
};

// One file each; the step kinds they answer for stand in program.h.
Finish prepare_conv(Context& context, Step& step);
Finish prepare_norm(Context& context, Step& step);
Finish prepare_pool(Context& context, Step& step);
Finish prepare_dense(Context& context, Step& step);
Finish prepare_softmax_loss(Context& context, Step& step);
Finish prepare_dropout(Context& context, Step& step);
Finish prepare_elementwise(Context& context, Step& step);     // accumulate, cast
Finish prepare_margin_rows(Context& context, Step& step);     // margin_features … margin_features_backward
Finish prepare_margin_sample(Context& context, Step& step);   // margin_sample, margin_gather
Finish prepare_margin_softmax(Context& context, Step& step);  // margin_statistics, _rescale, _gradient
Finish prepare_update(Context& context, Step& step);          // update, update_rows, advance_state

}  // namespace plumb::cpu
