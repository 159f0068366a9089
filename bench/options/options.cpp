#include "bench/options/options.h"

#include "base/error.h"
#include "base/text.h"
#include "bench/output/log_writer.h"
#include "models/model_builder.h"

namespace plumb {
namespace {

// Limits that keep every product of sizes inside 64 bits; far above what any device holds.
constexpr std::int64_t kLargestImage = 4096;
constexpr std::int64_t kMostIterations = 10'000'000;

OptionGroup length_group(BenchOptions& o) {
  return {"Batch and length",
          {number_option("--bs,--batch-per-device", "N", o.batch_per_device, {1, kMaxBatch},
                         "images per device and step")
               .also_called("--batch-size")
               .with_default(fmt::format("{} on cuda, {} on cpu", kBatchOnCuda, kBatchOnCpu))
               .with_key("batch_per_device"),
           number_option("--iters", "N", o.iterations, {1, kMostIterations}, "iterations run in all")
               .with_key("iterations"),
           number_option("--warmup", "N", o.warmup, {0, kMostIterations},
                         "leading iterations that are left out of averages; fewer than --iters"),
           number_option("--seconds", "S", o.seconds, {0, 1e7},
                         "run at least this long after the warm-up, for a steady temperature")}};
}

OptionSpec precision_flag(BenchOptions& o, const std::string& name, Precision precision,
                          const std::string& help) {
  OptionSpec spec = make_option("--" + name, "", help);
  spec.config_key = "precision";  // all four give the same value
  spec.exclusive_set = "precision";
  spec.set = [&o, precision](const std::string&) { o.precision = precision; };
  spec.get = [&o] { return nlohmann::ordered_json(name_of(o.precision)); };
  return spec;
}

OptionGroup precision_group(BenchOptions& o) {
  return {"Precision, one of them; what the device can't do is refused",
          {precision_flag(o, "fp32", Precision::fp32, "strict single precision (default)"),
           precision_flag(o, "tf32", Precision::tf32, "fp32 storage, products rounded to TF32"),
           precision_flag(o, "fp16", Precision::fp16, "mixed: fp32 masters, statistics and losses"),
           precision_flag(o, "bf16", Precision::bf16, "mixed: fp32 masters, statistics and losses")}};
}

// dynamic, none, or a factor.
OptionSpec loss_scale_option(BenchOptions& o) {
  using Kind = LossScaling::Kind;
  OptionSpec spec = make_option("--loss-scale", "dynamic|N|none",
                                "fp16 only: factor on the loss that keeps gradients in range; dynamic: 2^16, "
                                "doubled after 2000 clean steps, halved on overflow");
  spec.set = [&o](const std::string& text) {
    if (text == "dynamic" || text == "none") {
      o.loss_scaling = LossScaling{.kind = text == "none" ? Kind::none : Kind::dynamic};
      return;
    }
    const double factor =
        parse_number<double>("--loss-scale", text, {.lowest = 0, .highest = 0x1p24, .above_lowest = true});
    o.loss_scaling = LossScaling{.kind = Kind::fixed, .initial = static_cast<float>(factor)};
  };
  spec.get = [&o]() -> nlohmann::ordered_json {
    if (!o.loss_scaling || o.loss_scaling->kind == Kind::none) return "none";
    if (o.loss_scaling->kind == Kind::dynamic) return "dynamic";
    return o.loss_scaling->initial;
  };
  spec.default_text = "dynamic with --fp16";
  spec.values = {"dynamic", "none"};
  return spec;
}

OptionGroup cuda_group(BenchOptions& o) {
  return {
      "GPUs (--device cuda)",
      {enum_option<CudaGraph>(
           "--cuda-graph", o.cuda_graph,
           {{"auto", CudaGraph::automatic}, {"on", CudaGraph::on}, {"off", CudaGraph::off}},
           "capture the step once and replay it; auto: on unless --comm mpi carries gradients"),
       enum_option<bool>("--fusion", o.fuse, {{"auto", true}, {"off", false}},
                         "cuDNN's fused engines where the GPU and the precision have them"),
       enum_option<std::optional<TensorLayout>>(
           "--layout", o.layout, {{"auto", {}}, {"nhwc", TensorLayout::nhwc}, {"nchw", TensorLayout::nchw}},
           "element order of tensors in strict fp32; auto: nchw on GPUs before compute capability 9.0, whose "
           "Winograd engines want it; other precisions are nhwc"),
       flag_option(
           "--no-autotune", o.autotune, false,
           "take the engines that heuristics name first; without it every engine and fused pattern is "
           "timed before the run, once per GPU, and the fastest is remembered on disk")
           .with_key("autotune"),
       enum_option<TuneFor>(
           "--tune-for", o.tune_for, {{"time", TuneFor::time}, {"energy", TuneFor::energy}},
           "energy: of the engines within 10 % of the fastest, run the one that needs the fewest joules, "
           "for GPUs whose power limit sets the clock"),
       loss_scale_option(o),
       flag_option(
           "--share-gpu", o.share_gpu, true,
           "let several ranks use one GPU, which checks communication and measures no speed; gradients go "
           "through the host unless --comm nccl is given")}};
}

OptionGroup device_group(BenchOptions& o) {
  return {
      "Device and gradient exchange",
      {enum_option<DeviceChoice>(
           "--device", o.device,
           {{"auto", DeviceChoice::automatic}, {"cuda", DeviceChoice::cuda}, {"cpu", DeviceChoice::cpu}},
           "auto: cuda if a GPU answers, else cpu; it says what it chose"),
       number_option("--threads", "N", o.threads, {1, 4096}, "cpu threads per rank")
           .with_default("the CPUs of the rank's affinity mask, shared by the ranks that have the same mask"),
       flag_option("--oversubscribe-threads", o.oversubscribe_threads, true,
                   "let --threads be more than the CPUs of the rank's affinity mask"),
       enum_option<Winograd>(
           "--conv", o.winograd, {{"auto", Winograd::where_faster}, {"direct", Winograd::never}},
           "cpu: how 3x3 convolutions are computed; auto: by Winograd's algorithm where that is faster"),
       communicator_option(o.comm,
                           "what carries the gradients; auto: nccl between GPUs, else mpi; a single rank "
                           "exchanges none unless nccl or mpi is given"),
       number_option(
           "--bucket-mb", "X", o.bucket_mb, {.lowest = 0, .highest = 4096, .above_lowest = true},
           "largest bucket of gradients that travel together, in MiB; the last ones of a step take at most "
           "16, 4 and 1"),
       enum_option<ReduceDType>(
           "--reduce-dtype", o.reduce_dtype,
           {{"same", ReduceDType::same}, {"fp32", ReduceDType::fp32}, {"fp16", ReduceDType::fp16}},
           "what gradients are summed in; same: as they are"),
       flag_option("--no-overlap", o.overlap, false, "exchange gradients after backward, not during it")
           .with_key("overlap"),
       number_option("--nodes", "N", o.nodes, {1, 1'000'000},
                     "nodes of the layout; names the case of a run, sets the world of a dry run")
           .with_default("read from the hosts"),
       number_option("--devices-per-node", "G", o.devices_per_node, {1, 1'000'000}, "devices of each node")
           .with_default("read from the hosts")}};
}

OptionSpec image_size_option(BenchOptions& o) {
  OptionSpec spec = number_option("--image-size", "N", o.image_size, {32, kLargestImage}, "");
  if (!o.model->only_this_size) {
    spec.help =
        fmt::format("height and width in pixels; other than {} is marked as not comparable", o.image_size);
    return spec;
  }
  spec.help = "height and width in pixels; fixed";
  spec.set = [&o](const std::string& text) {
    if (text != std::to_string(o.image_size))
      throw Error(
          ExitCode::usage,
          "option --image-size: '{}' is not {}, the size that these networks are made for; leave it out",
          text, o.image_size);
  };
  return spec;
}

// "IResNet-50, IResNet-100 or MobileFaceNet y1"
std::string titles_of(const std::vector<const Model*>& models) {
  std::string titles(models.front()->title);
  for (std::size_t i = 1; i < models.size(); ++i)
    titles += (i + 1 < models.size() ? ", " : " or ") + std::string(models[i]->title);
  return titles;
}

// Which model, where the program trains several, and what its backbone may have.
OptionGroup network_group(BenchOptions& o) {
  const std::vector<const Model*> models = models_of(o.model->program, o.catalogue);
  OptionGroup group{"Network", {}};
  if (models.size() > 1) {
    std::vector<std::pair<std::string, const Model*>> names;
    for (const Model* model : models) names.emplace_back(model->name, model);
    group.options.push_back(
        enum_option(std::string(model_option(*o.model)), o.model, names, titles_of(models)));
  }
  if (o.model->margin_head)
    for (OptionSpec& spec : backbone_options(o.face, models)) group.options.push_back(std::move(spec));
  return group;
}

OptionGroup data_group(BenchOptions& o) {
  return {"Images",
          {text_option(
               "--data", "synthetic|PATH", o.data,
               "synthetic: one batch per rank from --seed and the rank; PATH: a folder with one subfolder "
               "of JPEG images per class, or a RecordIO file X.rec with its index X.idx")
               .with_values({"synthetic"}),
           number_option("--data-workers", "N", o.data_workers, {1, 1024}, "threads that decode images ahead")
               .with_default("as many as training needs, of the CPUs that it leaves"),
           image_size_option(o)}};
}

OptionGroup training_group(BenchOptions& o) {
  OptionGroup group{
      "Training",
      {enum_option<Optimizer>("--optimizer", o.optimizer, {{"sgd", Optimizer::sgd}, {"nag", Optimizer::nag}},
                              "v = momentum v + (g + decay w), w -= lr v; nag: Nesterov's"),
       number_option("--lr", "X", o.learning_rate, {0, 3e38}, "learning rate, constant")
           .with_key("learning_rate"),
       number_option("--momentum", "X", o.momentum, {.lowest = 0, .highest = 1, .below_highest = true},
                     "share of the last velocity that is kept"),
       number_option("--weight-decay", "X", o.weight_decay, {0, 1}, "L2 decay of parameters"),
       enum_option<DecayRule>(
           "--decay", o.decay,
           {{"all", DecayRule::all}, {"no-bn", DecayRule::no_bn}, {"weights-only", DecayRule::weights_only}},
           "which parameters decay"),
       text_option("--weights", "F", o.weights, "start from the parameters of this safetensors file"),
       text_option("--batch-file", "F", o.batch,
                   "every rank uses this safetensors file as the batch of every step: images [n,3,H,W] fp32, "
                   "labels [n] int64")
           .with_key("batch")
           .also_called("--batch"),
       text_option("--save-weights", "F", o.save_weights, "write parameters to this file at the end"),
       number_option("--seed", "N", o.seed, {}, "where all randomness starts"),
       flag_option(
           "--deterministic", o.deterministic, true,
           "bitwise the same result in every run; cuda: engines by rank, none that sums in any order, "
           "so none of cuDNN's fused ones")}};
  if (!o.model->margin_head)
    group.options.insert(group.options.begin() + 5,
                         number_option("--label-smoothing", "X", o.label_smoothing,
                                       {.lowest = 0, .highest = 1, .below_highest = true},
                                       "share of the target spread evenly"));
  return group;
}

OptionSpec written_formats_option(BenchOptions& o) {
  OptionSpec spec = text_option("--log-format", "A,B", o.dialect,
                                fmt::format("further logs at D/<format>/…, for the analyzers of: {}",
                                            fmt::join(written_formats(), ", ")));
  spec.config_key = "dialect";
  spec.aliases = {"--dialect"};
  spec.values = written_formats();
  spec.joins_values = true;
  return spec;
}

OptionGroup output_group(BenchOptions& o) {
  return {"Output",
          {text_option("--log-dir", "D", o.log_dir, "log at D/<N>n<G>g/<model>_b<BS>_<prec>_<K>.log"),
           number_option("--run", "K", o.run, {1, 1'000'000}, "number K of the log")
               .with_default("the next free"),
           written_formats_option(o),
           text_option("-o,--output", "D", o.output,
                       "result.json, env.json and program.json in a new folder here")
               .with_key("out")
               .also_called("--out"),
           flag_option("--profile", o.profile, true,
                       "after the run: every op's time against the device's limits, as a table and "
                       "profile.json"),
           flag_option("--trace", o.trace, true,
                       "after the run: trace.json, a timeline of every op for chrome://tracing or Perfetto"),
           flag_option("--json", o.json, true, "print one JSON object instead of the table"),
           text_option("--reference", "FILE", o.reference,
                       "what such devices reached, as results/published/reference.csv has it")
               .with_default("Plumbline's own runs"),
           flag_option("--no-check", o.check, false,
                       "don't verify that sums are exact before the run, that replicas agree and parameters "
                       "moved after it; losses must be finite all the same")
               .with_key("check"),
           flag_option("--no-probe", o.probe, false,
                       "don't measure the links between hosts before a run over several")
               .with_key("probe"),
           flag_option("--quiet", o.quiet, true, "failures and results only").in_set("loudness"),
           flag_option("--verbose", o.verbose, true, "say more of what is chosen").in_set("loudness")}};
}

OptionSpec task_flag(BenchOptions& o, const std::string& name, Task task, const std::string& help) {
  OptionSpec spec = make_option(name, "", help);
  spec.exclusive_set = "task";
  spec.set = [&o, task](const std::string&) { o.task = task; };
  spec.get = [&o, task] { return nlohmann::ordered_json(o.task == task); };
  return spec;
}

OptionGroup information_group(BenchOptions& o) {
  OptionSpec print_config =
      flag_option("--print-config", o.print_config, true, "print the values of all options as JSON");
  print_config.config_key.clear();
  OptionGroup group{
      "Without running",
      {task_flag(o, "--dry-run", Task::dry_run,
                 "print parameters, MACs, memory plan and roofline; needs no device, allocates nothing"),
       task_flag(o, "--find-max-bs", Task::find_max_batch,
                 "find the largest --bs that really runs a step, by trying; writes no log"),
       task_flag(o, "--decode-only", Task::decode_only,
                 "load the batches of --data without training, and print the rate; writes no log"),
       target_option(o.dry_run.target, "the device of a dry run").with_default("this machine's"),
       quantity_option(
           "--bandwidth", "100Gbps", o.dry_run.bandwidth_gbps,
           {{"Gbps", 1}, {"Mbps", 1e-3}, {"GB/s", 8}, {"MB/s", 8e-3}},
           {.lowest = 0, .highest = 1e6, .above_lowest = true},
           "with --dry-run and --nodes: predict the time of allreduces for this bandwidth of a node's "
           "links to others")
           .with_key("link_gbps")
           .also_called("--link-gbps"),
       quantity_option("--latency", "5us", o.dry_run.latency_us,
                       {{"us", 1}, {"ns", 1e-3}, {"ms", 1e3}, {"s", 1e6}}, {0, 1e6},
                       "likewise: latency of a hop between nodes")
           .with_default("0")
           .with_key("link_us")
           .also_called("--link-us"),
       stop_option("--list-targets", o.list_targets, "devices known to --target, with their limits"),
       std::move(print_config)}};
  for (OptionSpec& spec : question_options(o.questions)) group.options.push_back(std::move(spec));
  return group;
}

}  // namespace

BenchOptions default_options(std::string_view program, std::span<const Model> catalogue) {
  const std::vector<const Model*> models = models_of(program, catalogue);
  if (models.empty()) throw Error(ExitCode::internal, "{} has no model to train", program);
  return {.catalogue = catalogue, .model = models.front()};
}

OptionTable bench_option_table(BenchOptions& options) {
  OptionTable table{.program = std::string(options.model->program),
                    .description = fmt::format("Trains {}, times every iteration, and writes logs that "
                                               "DLPerf's analyzers read. Under mpirun every "
                                               "rank trains on its own images and gradients are averaged.",
                                               options.model->task),
                    .groups = {length_group(options), precision_group(options)},
                    .foreign = {{"--decode", "CPUs decode all images; leave it out"}}};  // of 0.2
  if (OptionGroup network = network_group(options); !network.options.empty())
    table.groups.push_back(std::move(network));
  if (options.model->margin_head) table.groups.push_back(margin_group(options.face));
  for (const auto& group : {device_group, cuda_group, data_group, training_group, output_group})
    table.groups.push_back(group(options));
  table.groups.push_back(watchdog_options(options.watch));
  table.groups.push_back(information_group(options));
  return table;
}

BenchOptions parse_options(int argc, const char* const* argv, std::string_view program,
                           std::span<const Model> catalogue) {
  BenchOptions options = default_options(program, catalogue);
  const Model* const first = options.model;
  parse_command_line(bench_option_table(options), argc, argv);
  if (options.model != first) {  // with its own defaults
    options = {.catalogue = catalogue, .model = options.model};
    parse_command_line(bench_option_table(options), argc, argv);
  }
  if (!options.questions.any() && !options.list_targets) check_together(options);
  return options;
}

nlohmann::ordered_json options_json(const BenchOptions& options) {
  BenchOptions copy = options;
  return config_json(bench_option_table(copy));
}

std::string options_fingerprint(const BenchOptions& options) {
  return fingerprint_of(options_json(options));
}

}  // namespace plumb
