#include "bench/options/options.h"

#include "base/error.h"
#include "base/ranges.h"
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
           number_option("--iters", "N", o.iterations, {1, kMostIterations},
                         "iterations to run, warm-up included")
               .with_key("iterations"),
           number_option("--warmup", "N", o.warmup, {0, kMostIterations},
                         "leading iterations that averages leave out"),
           number_option("--seconds", "S", o.seconds, {0, 1e7}, "run at least this long after the warm-up")
               .rare()}};
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
  return {"Precision, one of them",
          {precision_flag(o, "fp32", Precision::fp32, "strict single precision (default)"),
           precision_flag(o, "tf32", Precision::tf32, "fp32 in memory; products are rounded to TF32"),
           precision_flag(o, "fp16", Precision::fp16, "mixed; weights, statistics and losses stay fp32"),
           precision_flag(o, "bf16", Precision::bf16, "mixed, likewise")}};
}

// dynamic, none, or a factor.
OptionSpec loss_scale_option(BenchOptions& o) {
  using Kind = LossScaling::Kind;
  OptionSpec spec = make_option("--loss-scale", "dynamic|N|none",
                                "factor on the loss with --fp16, so that small gradients do not vanish\n"
                                "dynamic: 2^16, doubled after 2000 clean steps, halved on overflow");
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
  return rare({"GPUs (--device cuda)",
               {enum_option<CudaGraph>(
                    "--cuda-graph", o.cuda_graph,
                    {{"auto", CudaGraph::automatic}, {"on", CudaGraph::on}, {"off", CudaGraph::off}},
                    "capture a step once and replay it\nauto: on, unless gradients go over mpi"),
                enum_option<bool>("--fusion", o.fuse, {{"auto", true}, {"off", false}},
                                  "use cuDNN's fused engines where the GPU and the precision have them"),
                flag_option("--no-autotune", o.autotune, false,
                            "use the engines that heuristics choose instead of timing all once per GPU")
                    .with_key("autotune"),
                loss_scale_option(o),
                flag_option("--share-gpu", o.share_gpu, true,
                            "let ranks share a GPU, to check communication and not speed")}});
}

OptionGroup device_group(BenchOptions& o) {
  return {
      "Device and communication",
      {enum_option<DeviceChoice>(
           "--device", o.device,
           {{"auto", DeviceChoice::automatic}, {"cuda", DeviceChoice::cuda}, {"cpu", DeviceChoice::cpu}},
           "device to train on\nauto: cuda if a GPU answers, else cpu"),
       number_option("--threads", "N", o.threads, {1, 4096}, "CPU threads per rank")
           .with_default("the CPUs of its affinity mask")
           .rare(),
       flag_option("--oversubscribe-threads", o.oversubscribe_threads, true,
                   "accept more --threads than CPUs in the rank's affinity mask")
           .rare(),
       enum_option<Winograd>("--conv", o.winograd,
                             {{"auto", Winograd::where_faster}, {"direct", Winograd::never}},
                             "algorithm of 3x3 convolutions on a CPU\nauto: Winograd's where it is faster")
           .rare(),
       communicator_option(
           o.comm,
           "library that sums gradients\nauto: nccl between GPUs that ranks do not share, else "
           "mpi\nnccl, mpi: even with a single rank")
           .rare(),
       number_option("--bucket-mb", "X", o.bucket_mb, {.lowest = 0, .highest = 4096, .above_lowest = true},
                     "largest bucket of gradients, in MiB")
           .rare(),
       enum_option<ReduceDType>(
           "--reduce-dtype", o.reduce_dtype,
           {{"same", ReduceDType::same}, {"fp32", ReduceDType::fp32}, {"fp16", ReduceDType::fp16}},
           "type in which gradients are summed\nsame: as they are")
           .rare(),
       flag_option("--no-overlap", o.overlap, false, "reduce gradients after backward instead of during it")
           .with_key("overlap")
           .rare(),
       number_option("--nodes", "N", o.nodes, {1, 1'000'000}, "nodes of a dry run, or in the log's name")
           .with_default("read from the hosts")
           .rare(),
       number_option("--devices-per-node", "G", o.devices_per_node, {1, 1'000'000},
                     "devices per node, likewise")
           .with_default("read from the hosts")
           .rare()}};
}

OptionSpec image_size_option(BenchOptions& o) {
  OptionSpec spec = number_option("--image-size", "N", o.image_size, {32, kLargestImage}, "");
  if (!o.model->only_this_size) {
    spec.help = fmt::format("height and width in pixels; results with {} are comparable", o.image_size);
    return spec;
  }
  spec.help = "height and width in pixels; fixed";
  spec.set = [&o](const std::string& text) {
    if (text != std::to_string(o.image_size))
      throw Error(ExitCode::usage, "--image-size {}: expected {}, the size of these networks; leave it out",
                  text, o.image_size);
  };
  return spec;
}

// Which model, where the program trains several, and what its backbone may have.
OptionGroup network_group(BenchOptions& o) {
  const std::vector<const Model*> models = models_of(o.model->program, o.catalogue);
  OptionGroup group{"Network", {}};
  if (models.size() > 1) {
    std::vector<std::pair<std::string, const Model*>> names;
    for (const Model* model : models) names.emplace_back(model->name, model);
    group.options.push_back(enum_option(std::string(model_option(*o.model)), o.model, names,
                                        fmt::format("{}", fmt::join(mapped(models, &Model::title), ", "))));
  }
  if (o.model->margin_head)
    for (OptionSpec& spec : backbone_options(o.face)) group.options.push_back(std::move(spec));
  return group;
}

OptionGroup data_group(BenchOptions& o) {
  return {"Images",
          {text_option("--data", "synthetic|PATH", o.data,
                       "images to train on\n"
                       "PATH: a folder of JPEG folders, one per class, or X.rec")
               .with_values({"synthetic"}),
           number_option("--data-workers", "N", o.data_workers, {1, 1024}, "threads that decode images")
               .with_default("the CPUs that training leaves")
               .rare(),
           image_size_option(o).rare()}};
}

OptionGroup training_group(BenchOptions& o) {
  OptionGroup group{
      "Training",
      {enum_option<Optimizer>("--optimizer", o.optimizer, {{"sgd", Optimizer::sgd}, {"nag", Optimizer::nag}},
                              "v = momentum v + (g + decay w), w -= lr v\nnag: Nesterov's variant"),
       number_option("--lr", "X", o.learning_rate, {0, 3e38}, "constant learning rate")
           .with_key("learning_rate"),
       number_option("--momentum", "X", o.momentum, {.lowest = 0, .highest = 1, .below_highest = true},
                     "SGD momentum"),
       number_option("--weight-decay", "X", o.weight_decay, {0, 1}, "L2 decay of parameters"),
       enum_option<DecayRule>(
           "--decay", o.decay,
           {{"all", DecayRule::all}, {"no-bn", DecayRule::no_bn}, {"weights-only", DecayRule::weights_only}},
           "parameters that decay"),
       text_option("--weights", "F", o.weights, "start from the parameters in this safetensors file"),
       text_option("--batch-file", "F", o.batch,
                   "train every step on this safetensors file: images [n,3,H,W] fp32, labels [n] int64")
           .with_key("batch")
           .also_called("--batch"),
       text_option("--save-weights", "F", o.save_weights, "write the parameters to this file at the end"),
       number_option("--seed", "N", o.seed, {}, "seed of all random numbers"),
       flag_option("--deterministic", o.deterministic, true,
                   "compute the same bits in every run, without cuDNN's fused engines")}};
  if (!o.model->margin_head)
    group.options.insert(group.options.begin() + 5,
                         number_option("--label-smoothing", "X", o.label_smoothing,
                                       {.lowest = 0, .highest = 1, .below_highest = true},
                                       "share of the target that is spread over all classes"));
  return rare(std::move(group));
}

OptionSpec written_formats_option(BenchOptions& o) {
  OptionSpec spec = text_option(
      "--log-format", "A,B", o.dialect,
      "write logs in these formats too, in D/<format>/; plumbline analyze --list-formats lists them");
  spec.config_key = "dialect";
  spec.aliases = {"--dialect"};
  spec.values = written_formats();
  return spec;
}

OptionGroup output_group(BenchOptions& o) {
  return {"Output",
          {text_option("--log-dir", "D", o.log_dir, "write D/<N>n<G>g/<model>_b<BS>_<prec>_<K>.log"),
           number_option("--run", "K", o.run, {1, 1'000'000}, "number K of the log")
               .with_default("the next free")
               .rare(),
           written_formats_option(o).rare(),
           text_option("-o,--output", "D", o.output, "write a folder D/<run> with result.json")
               .with_key("out")
               .also_called("--out"),
           flag_option("--profile", o.profile, true, "then time every op against the device's limits"),
           flag_option("--trace", o.trace, true, "then write trace.json, a timeline of every op for Perfetto")
               .rare(),
           flag_option("--json", o.json, true, "print one JSON object instead of the table"),
           text_option("--reference", "FILE", o.reference,
                       "what such devices reached, as results/published/reference.csv has it")
               .with_default("Plumbline's own runs")
               .rare(),
           flag_option("--no-check", o.check, false,
                       "do not check that sums are exact, replicas agree and parameters moved")
               .with_key("check")
               .rare(),
           flag_option("--no-probe", o.probe, false, "do not measure the links between hosts before a run")
               .with_key("probe")
               .rare(),
           flag_option("--quiet", o.quiet, true, "print failures and results only").in_set("loudness").rare(),
           flag_option("--verbose", o.verbose, true, "print more about what is chosen")
               .in_set("loudness")
               .rare()}};
}

OptionGroup information_group(BenchOptions& o) {
  OptionSpec print_config =
      flag_option("--print-config", o.print_config, true, "print the values of all options as JSON").rare();
  print_config.config_key.clear();
  OptionGroup group{
      "Without running",
      {flag_option("--dry-run", o.dry_run, true,
                   "print memory, largest batch, MACs and roofline; needs no device"),
       target_option(o.target, "device of a dry run; see --list-targets").with_default("this one"),
       stop_option("--list-targets", o.list_targets, "print the devices of --target with their limits")
           .rare(),
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
  const std::string program(options.model->program);
  OptionTable table{
      .program = program,
      .description = fmt::format("Trains {}, times every iteration, and writes a log and a result. Under "
                                 "mpirun every rank trains on its own images, and gradients are averaged.",
                                 options.model->task),
      .groups = {length_group(options), precision_group(options)},
      .examples = {program + " --warmup 5 --iters 25 # try it on this machine",
                   "mpirun -np 8 " + program + " --bs 256 --fp16 # train on the 8 GPUs of a host",
                   program + " --dry-run --target h200 --bf16 # plan a step of another device"}};
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
