#include "bench/allreduce/allreduce_options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "comm/communicator.h"

namespace plumb {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr int kMostTimedIterations = 1'000'000;
constexpr std::array<std::pair<char, int>, 3> kByteSuffixes{{{'K', 10}, {'M', 20}, {'G', 30}}};

OptionSpec bytes_option(const std::string& names, std::uint64_t& target, const std::string& help) {
  OptionSpec spec = make_option(names, "B", help);
  spec.set = [option = spec.names.front(), &target](const std::string& text) {
    target = parse_bytes(option, text);
  };
  spec.get = [&target] { return nlohmann::ordered_json(target); };
  spec.default_text = bytes_text(target);
  return spec;
}

OptionGroup messages_group(AllreduceOptions& o) {
  using Kind = Collective::Kind;
  return {"Messages",
          {enum_option<Kind>("--collective", o.collective,
                             {{"allreduce", Kind::allreduce_sum},
                              {"allgather", Kind::allgather},
                              {"reducescatter", Kind::reduce_scatter_sum},
                              {"broadcast", Kind::broadcast}},
                             "collective to time\nbroadcast: from rank 0"),
           bytes_option("--min,-b", o.min_bytes,
                        "smallest message, in bytes, or K, M or G of 1024\n"
                        "allgather, reducescatter: the parts of all ranks together"),
           bytes_option("--max,-e", o.max_bytes, "largest message"),
           number_option("--factor,-f", "F", o.factor, {2, 1024}, "each message is F times the one before"),
           enum_option<DType>("--dtype,-d", o.dtype,
                              {{"fp32", DType::f32}, {"fp16", DType::f16}, {"bf16", DType::bf16}},
                              "type of the elements"),
           number_option("--iters,-n", "N", o.iterations, {1, kMostTimedIterations}, "timed iterations")
               .with_key("iterations"),
           number_option("--warmup,-w", "N", o.warmup, {0, kMostTimedIterations},
                         "untimed iterations before them")}};
}

OptionGroup carrier_group(AllreduceOptions& o) {
  return {
      "Device and communicator",
      {enum_option<DeviceChoice>(
           "--device", o.device,
           {{"auto", DeviceChoice::automatic}, {"cuda", DeviceChoice::cuda}, {"cpu", DeviceChoice::cpu}},
           "memory of the messages\nauto: cuda if a GPU answers, else cpu"),
       communicator_option(
           o.comm,
           "library that runs the collectives\nauto: nccl between GPUs that ranks do not share, else mpi"),
       flag_option("--share-gpu", o.share_gpu, true,
                   "let ranks share a GPU, to check communication and not speed")
           .rare()}};
}

ReplayedModel parse_replay(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  std::vector<std::string> names;
  for (const Model& model : model_catalogue()) names.emplace_back(model.name);
  ReplayedModel replay{.text = text};
  const auto named = std::ranges::find(model_catalogue(), parts.front(), &Model::name);
  const bool has_precision = parts.size() == 2;
  if (named == model_catalogue().end() || parts.size() > 2 ||
      (has_precision && parts[1] != "fp16" && parts[1] != "fp32" && parts[1] != "bf16"))
    throw Error(ExitCode::usage, "--replay {}: expected one of {}, alone or with :fp16 or :bf16", text,
                fmt::join(names, ", "));
  replay.model = &*named;
  if (has_precision && parts[1] != "fp32")
    replay.precision = parts[1] == "fp16" ? Precision::fp16 : Precision::bf16;
  return replay;
}

OptionSpec replay_option(AllreduceOptions& o) {
  OptionSpec spec =
      make_option("--replay", "MODEL[:fp16]", "send the messages of a training step, one by one");
  for (const Model& model : model_catalogue()) {
    spec.values.emplace_back(model.name);
    spec.values.push_back(std::string(model.name) + ":fp16");
  }
  spec.set = [&o](const std::string& text) { o.replay = parse_replay(text); };
  spec.get = [&o] { return nlohmann::ordered_json(o.replay.text); };
  return spec;
}

OptionGroup replay_group(AllreduceOptions& o) {
  return {
      "Replay of a training step, and links",
      {replay_option(o),
       number_option("--bs", "N", o.batch_per_device, {1, kMaxBatch}, "with --replay: images per device")
           .rare()
           .also_called("--batch-size")
           .with_default(fmt::format("{} on cuda, {} on cpu", kBatchOnCuda, kBatchOnCpu))
           .with_key("batch_per_device"),
       number_option("--bucket-mb", "X", o.bucket_mb, {.lowest = 0, .highest = 4096, .above_lowest = true},
                     "with --replay: largest bucket of gradients, in MiB")
           .rare()
           .with_default("25"),
       flag_option("--pairs", o.pairs, true,
                   "measure every pair of hosts, then rings, to find the slow host or link"),
       text_option("--output", "F", o.output,
                   "write the links to this file, links.json, for plumbline scaling")
           .with_key("out")
           .also_called("--out"),
       flag_option("--overwrite", o.overwrite, true, "replace the file of --output if it exists").rare()}};
}

OptionGroup answers_group(AllreduceOptions& o) {
  OptionGroup group{"Output",
                    {flag_option("--json", o.json, true, "print one JSON object instead of the table"),
                     flag_option("--quiet", o.quiet, true, "print failures and results only").rare()}};
  for (OptionSpec& spec : question_options(o.questions)) group.options.push_back(std::move(spec));
  return group;
}

void check_together(const AllreduceOptions& o) {
  const auto refuse = [](const std::string& sentence) { throw Error(ExitCode::usage, sentence); };
  if (o.max_bytes < o.min_bytes)
    throw Error(ExitCode::usage, "--min {} and --max {} leave no message to send; pass a larger --max",
                bytes_text(o.min_bytes), bytes_text(o.max_bytes));
  if (o.pairs && o.replay.model) refuse("--pairs and --replay exclude each other; pass only one");
  if (o.pairs && o.comm == "nccl")
    refuse("--pairs and --comm nccl exclude each other, as pairs use MPI; leave --comm out");
  if (o.share_gpu && !o.output.empty())
    refuse("--share-gpu and --output exclude each other, as ranks on one GPU measure no link; leave one out");
  if (!o.replay.model && (o.batch_per_device || o.bucket_mb))
    throw Error(ExitCode::usage, "{} needs --replay; add it, or leave this out",
                o.bucket_mb ? "--bucket-mb" : "--bs");
  if (!o.output.empty() && !o.pairs && (o.replay.model || o.collective != Collective::Kind::allreduce_sum))
    refuse(
        "--output: links.json holds pairs or allreduces of many sizes; pass --pairs, or leave --replay and "
        "--collective out");
}

}  // namespace

std::uint64_t parse_bytes(const std::string& option, const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(end, text.data() + text.size());
  int shift = suffix.empty() ? 0 : -1;
  for (const auto& [letter, bits] : kByteSuffixes)
    if (suffix.size() == 1 && (suffix[0] == letter || suffix[0] == letter + ('a' - 'A'))) shift = bits;
  if (error != std::errc() || shift < 0 || number == 0 || number > (kMostBytes >> shift))
    throw Error(ExitCode::usage, "{} {}: expected a size from 1 to 1024G; pass bytes, or K, M or G as in 64K",
                option, text);
  return number << shift;
}

std::string bytes_text(std::uint64_t bytes) {
  std::string text = std::to_string(bytes);
  for (const auto& [letter, bits] : kByteSuffixes)
    if (bytes > 0 && bytes % (std::uint64_t{1} << bits) == 0) text = std::to_string(bytes >> bits) + letter;
  return text;
}

OptionTable allreduce_option_table(AllreduceOptions& options) {
  return {
      .program = kAllreduceProgram,
      .description =
          "Times the collectives of training, in place and out of place, and checks every element. Start it "
          "under mpirun. One-letter options mean the same as in nccl-tests.",
      .groups = {messages_group(options), carrier_group(options), replay_group(options),
                 answers_group(options), watchdog_options(options.watch)},
      .examples = {"mpirun -np 8 bench_allreduce -b 1M -e 1G # time allreduces of 1 MiB to 1 GiB",
                   "mpirun -np 8 bench_allreduce --replay resnet50:fp16 # time the messages of a step",
                   "mpirun -np 3 -H n1,n2,n3 bench_allreduce --pairs --output links.json # find the slow "
                   "host or link"}};
}

AllreduceOptions parse_allreduce_options(int argc, const char* const* argv) {
  AllreduceOptions options;
  parse_command_line(allreduce_option_table(options), argc, argv);
  if (!options.questions.any()) check_together(options);
  return options;
}

std::string options_fingerprint(const AllreduceOptions& options) {
  AllreduceOptions copy = options;
  return fingerprint_of(config_json(allreduce_option_table(copy)));
}

AllreduceOptions resolve(AllreduceOptions options, const DeviceLimits& limits) {
  const bool is_gpu = limits.kind == DeviceKind::cuda;
  if (options.comm == "auto")
    options.comm = is_gpu && why_no_nccl().empty() && !options.share_gpu ? "nccl" : "mpi";
  if (!is_gpu && options.comm == "nccl")
    throw Error(ExitCode::usage, "--comm nccl: expected GPUs, and device {} is a cpu; pass --comm mpi",
                limits.name);
  return options;
}

std::vector<std::uint64_t> message_bytes(const AllreduceOptions& options, int world_size) {
  const std::uint64_t step =
      bytes_of(options.dtype) *
      (has_parts(options.collective) ? static_cast<std::uint64_t>(world_size) : std::uint64_t{1});
  std::vector<std::uint64_t> sizes;
  const auto factor = static_cast<std::uint64_t>(options.factor);
  for (std::uint64_t wanted = options.min_bytes; wanted <= options.max_bytes; wanted *= factor) {
    const std::uint64_t bytes = std::max(wanted / step, std::uint64_t{1}) * step;
    if (sizes.empty() || sizes.back() != bytes) sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace plumb
