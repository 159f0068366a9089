// What options mean together, and on a device.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "bench/options/options.h"
#include "bench/output/log_writer.h"
#include "comm/nccl_communicator.h"

namespace plumb {
namespace {

// --bandwidth and --latency describe links of a dry run over several nodes.
void check_link(const BenchOptions& o) {
  const bool has_bandwidth = o.dry_run.bandwidth_gbps.has_value();
  if (!has_bandwidth && !o.dry_run.latency_us) return;
  const char* const name = has_bandwidth ? "--bandwidth" : "--latency";
  if (o.task != Task::dry_run)
    throw Error(ExitCode::usage, "option {}: a run measures its links itself; add --dry-run or leave it out",
                name);
  if (o.nodes < 2)
    throw Error(ExitCode::usage, "option {}: describes links between nodes; add --nodes with 2 or more",
                name);
  if (!has_bandwidth)
    throw Error(ExitCode::usage, "option --latency: needs a bandwidth next to it; add --bandwidth");
}

// What the device can't do of these options, with the remedy; empty if it can do all.
std::string why_not_on(const DeviceLimits& limits, const BenchOptions& options) {
  if (!limits.flops_per_second.contains(options.precision)) {
    std::string able;
    for (const auto& [precision, flops] : limits.flops_per_second)
      append_part(able, fmt::format("--{}", name_of(precision)), " or ");
    const bool lacks_bf16 = options.precision == Precision::bf16 && limits.kind == DeviceKind::cpu;
    return fmt::format("option --{}: device {} can't do it{}; give {}", name_of(options.precision),
                       limits.name, lacks_bf16 ? ", it has neither AVX512_BF16 nor AMX" : "", able);
  }
  if (options.face.head_dtype == HeadDtype::tf32 && !limits.flops_per_second.contains(Precision::tf32))
    return fmt::format("option --head-dtype: device {} can't do 'tf32'; give fp32 or same", limits.name);
  if (limits.kind == DeviceKind::cuda) {
    if (options.winograd == Winograd::where_faster) return "";
    return fmt::format(
        "option --conv: 'direct' is for cpus, and device {} is a GPU, whose engines --no-autotune and "
        "--fusion decide; leave it out",
        limits.name);
  }
  if (options.comm == "nccl")
    return fmt::format("option --comm: 'nccl' is for GPUs, and device {} is a cpu; give --comm mpi",
                       limits.name);
  if (options.cuda_graph == CudaGraph::on)
    return fmt::format("option --cuda-graph: 'on' is for GPUs, and device {} is a cpu; leave it out",
                       limits.name);
  if (options.tune_for == TuneFor::energy)
    return fmt::format("option --tune-for: 'energy' is for GPUs, and device {} is a cpu; leave it out",
                       limits.name);
  if (options.layout)
    return fmt::format("option --layout: '{}' is for GPUs, and device {} is a cpu; leave it out",
                       name_of(*options.layout), limits.name);
  return "";
}

}  // namespace

void check_together(const BenchOptions& o) {
  constexpr ExitCode kUsage = ExitCode::usage;
  if (o.warmup >= o.iterations)
    throw Error(kUsage,
                "options --warmup {} and --iters {} leave no iteration to measure; give --warmup fewer than "
                "--iters",
                o.warmup, o.iterations);
  const std::int64_t devices = std::int64_t{std::max(o.nodes, 1)} * std::max(o.devices_per_node, 1);
  if (devices > kMaxRanks)
    throw Error(kUsage,
                "options --nodes {} and --devices-per-node {} make {} devices; give a layout of at most {}",
                o.nodes, o.devices_per_node, devices, kMaxRanks);
  formats_to_write(o.dialect, o.seconds > 0 ? 0 : o.iterations);  // throws for what can't be written
  if (!o.batch.empty() && o.data != "synthetic")
    throw Error(kUsage, "options --batch-file {} and --data {} exclude each other; give one source of images",
                o.batch, o.data);
  if (o.cuda_graph == CudaGraph::on && (o.comm == "mpi" || (o.share_gpu && o.comm == "auto")))
    throw Error(
        kUsage,
        "option --cuda-graph: 'on' can't go with {}, whose sums the host carries; give --cuda-graph off "
        "or --comm nccl",
        o.comm == "mpi" ? "--comm mpi" : "--share-gpu");
  if (o.loss_scaling && o.loss_scaling->kind != LossScaling::Kind::none && o.precision != Precision::fp16)
    throw Error(kUsage, "option --loss-scale: applies to --fp16 only, and this run is in {}; leave it out",
                name_of(o.precision));
  if (o.tune_for == TuneFor::energy && (!o.autotune || o.deterministic))
    throw Error(kUsage, "option --tune-for: 'energy' needs tuning, which {} turns off; leave one of them out",
                o.autotune ? "--deterministic" : "--no-autotune");
  if (o.layout == TensorLayout::nchw && o.precision != Precision::fp32)
    throw Error(kUsage, "option --layout: 'nchw' is for --fp32, and this run is in {}; leave it out",
                name_of(o.precision));
  if (o.face.head_dtype == HeadDtype::tf32 && o.precision == Precision::fp32)
    throw Error(
        kUsage,
        "option --head-dtype: 'tf32' is for --fp16 and --bf16, and this run is in fp32; leave it out, "
        "or give --tf32 for all products");
  if (o.task == Task::find_max_batch && o.batch_per_device)
    throw Error(
        kUsage,
        "options --find-max-bs and --bs {} exclude each other: it looks for the batch; leave --bs out",
        *o.batch_per_device);
  if (o.task == Task::find_max_batch && !o.batch.empty())
    throw Error(kUsage, "options --find-max-bs and --batch-file exclude each other; leave --batch-file out");
  if (o.task == Task::decode_only && o.data == "synthetic")
    throw Error(kUsage,
                "option --decode-only: measures how fast images are loaded, and synthetic ones aren't; give "
                "--data FOLDER or --data X.rec");
  if (o.model->margin_head) check_face(o.face, *o.model, models_of(o.model->program, o.catalogue));
  check_link(o);
  if (!o.dry_run.target.empty() && o.task != Task::dry_run)
    throw Error(kUsage,
                "option --target: {} can't be trained on, a run uses this machine's device; add --dry-run",
                o.dry_run.target);
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
