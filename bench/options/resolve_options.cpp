// What options mean together, and on a device.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "bench/options/options.h"
#include "bench/output/log_writer.h"
#include "comm/communicator.h"

namespace plumb {
namespace {

// What the device can't do of these options, with the remedy; empty if it can do all.
std::string why_not_on(const DeviceLimits& limits, const BenchOptions& options) {
  if (!limits.flops_per_second.contains(options.precision)) {
    std::string able;
    for (const auto& [precision, flops] : limits.flops_per_second)
      append_part(able, fmt::format("--{}", name_of(precision)), " or ");
    const bool lacks_bf16 = options.precision == Precision::bf16 && limits.kind == DeviceKind::cpu;
    return fmt::format("--{}: device {} does not support it{}; pass {}", name_of(options.precision),
                       limits.name, lacks_bf16 ? ", it has neither AVX512_BF16 nor AMX" : "", able);
  }
  if (options.face.head_dtype == HeadDtype::tf32 && !limits.flops_per_second.contains(Precision::tf32))
    return fmt::format("--head-dtype tf32: device {} does not support it; pass fp32 or same", limits.name);
  if (limits.kind == DeviceKind::cuda) {
    if (options.winograd == Winograd::where_faster) return "";
    return fmt::format(
        "--conv direct: expected a cpu, and device {} is a GPU; leave it out, or use --no-autotune and "
        "--fusion",
        limits.name);
  }
  if (options.comm == "nccl")
    return fmt::format("--comm nccl: expected GPUs, and device {} is a cpu; pass --comm mpi", limits.name);
  if (options.cuda_graph == CudaGraph::on)
    return fmt::format("--cuda-graph on: expected a GPU, and device {} is a cpu; leave it out", limits.name);
  return "";
}

}  // namespace

void check_together(const BenchOptions& o) {
  constexpr ExitCode kUsage = ExitCode::usage;
  if (o.warmup >= o.iterations)
    throw Error(kUsage, "--warmup {} and --iters {} leave no iteration to measure; pass a smaller --warmup",
                o.warmup, o.iterations);
  const std::int64_t devices = std::int64_t{std::max(o.nodes, 1)} * std::max(o.devices_per_node, 1);
  if (devices > kMaxRanks)
    throw Error(kUsage, "--nodes {} and --devices-per-node {} make {} devices; pass a layout of at most {}",
                o.nodes, o.devices_per_node, devices, kMaxRanks);
  formats_to_write(o.dialect, o.seconds > 0 ? 0 : o.iterations);  // throws for what can't be written
  if (!o.batch.empty() && o.data != "synthetic")
    throw Error(kUsage, "--batch-file {} and --data {} exclude each other; pass only one source of images",
                o.batch, o.data);
  if (o.loss_scaling && o.loss_scaling->kind != LossScaling::Kind::none && o.precision != Precision::fp16)
    throw Error(kUsage, "--loss-scale needs --fp16, and this run is in {}; leave it out",
                name_of(o.precision));
  if (o.face.head_dtype == HeadDtype::tf32 && o.precision == Precision::fp32)
    throw Error(kUsage,
                "--head-dtype tf32 needs --fp16 or --bf16, and this run is in fp32; leave it out, or pass "
                "--tf32 for all products");
  if (o.model->margin_head) check_face(o.face, *o.model);
  if (!o.target.empty() && !o.dry_run)
    throw Error(kUsage, "--target {} needs --dry-run, as a run uses this machine's device; add it", o.target);
}

BenchOptions resolve(BenchOptions options, const DeviceLimits& limits, int world_size) {
  if (const std::string why = why_not_on(limits, options); !why.empty())
    throw Error(ExitCode::usage, "{}", why);
  const bool is_gpu = limits.kind == DeviceKind::cuda;  // with NCCL, graphs of a step, engines to choose from
  if (!options.batch_per_device) options.batch_per_device = is_gpu ? kBatchOnCuda : kBatchOnCpu;
  options.device = is_gpu ? DeviceChoice::cuda : DeviceChoice::cpu;
  if (options.comm == "auto" && world_size > 1)
    options.comm = is_gpu && why_no_nccl().empty() && !options.share_gpu ? "nccl" : "mpi";
  if (!options.loss_scaling && options.precision == Precision::fp16)
    options.loss_scaling = LossScaling{.kind = LossScaling::Kind::dynamic};
  if (!is_gpu) options.autotune = false;  // a cpu has one engine for everything
  options.face = resolve_face(options.face, *options.model);
  return options;
}

bool has_collectives(const BenchOptions& options, int world_size) {
  return world_size > 1 || options.comm != "auto";
}

}  // namespace plumb
