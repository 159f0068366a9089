// The options of the bench programs: one table drives parsing, --help, the nearest-name hint, completions and
// the "config" of result.json.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_defaults.h"
#include "base/options/option_table.h"
#include "comm/gradient_reduction.h"
#include "kernels/device.h"
#include "models/catalogue.h"

namespace plumb {

inline constexpr std::int64_t kBatchOnCuda = 128, kBatchOnCpu = 8;  // per device, by default

enum class CudaGraph { automatic, on, off };

// The watchdog (comm/watchdog) and its patience.
struct WatchOptions {
  bool on = true;
  double timeout_seconds = 30, startup_timeout_seconds = 600;
};

// Answered by main; nothing else is checked then.
struct Questions {
  std::optional<Shown> help;
  bool version = false;
  std::string completions;  // "zsh"; empty: not asked for
  bool any() const { return help || version || !completions.empty(); }
};
// --completions, --version, --help and --help-all.
std::vector<OptionSpec> question_options(Questions& questions);

enum class FaceLoss { arcface, cosface, combined };

// In half precision, of the last dense layer, the last norm and the class centers. tf32: stored in fp32.
enum class HeadDtype { fp32, tf32, same };

// Options of models with a margin head. An empty value has a default that depends on another option (see
// resolve_face()).
struct FaceOptions {
  std::int64_t classes = 85742;           // of MS1M, as PLSC's benchmark has them
  std::optional<std::int64_t> embedding;  // the model's
  bool prelu_per_layer = false;
  std::optional<double> dropout;  // the model's
  Head head = Head::sharded;
  std::optional<double> sample_rate;  // 0.1 with Head::sampled
  FaceLoss loss = FaceLoss::arcface;
  std::optional<Margins> margins;  // default: the loss's own
  double scale = 64;
  MarginLoss::Gradient margin_gradient = MarginLoss::Gradient::exact;
  HeadDtype head_dtype = HeadDtype::fp32;
};

// Options of a bench program. Defaults are those of the model's recipe; what is empty is decided by the
// device and the model (see resolve()).
struct BenchOptions {
  std::span<const Model> catalogue = model_catalogue();
  const Model* model = &catalogue.front();  // one of the catalogue
  FaceOptions face;
  std::optional<std::int64_t> batch_per_device;  // default 128 on cuda, 8 on cpu
  Precision precision = Precision::fp32;
  std::int64_t iterations = model->recipe.iterations, warmup = model->recipe.warmup;
  double seconds = kDefaults.seconds;  // run at least this long
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 0;                             // cpu threads of this rank; 0: its share of the affinity mask
  bool oversubscribe_threads = false;          // more of them than the rank has CPUs
  Winograd winograd = Winograd::where_faster;  // cpu: algorithm of 3x3 convolutions
  std::string comm = "auto";  // resolved: "nccl" or "mpi"; "auto" where a single rank needs none
  double bucket_mb = kDefaults.bucket_mb;
  ReduceDType reduce_dtype = ReduceDType::same;
  bool overlap = kDefaults.overlap;
  bool share_gpu = kDefaults.share_gpu;
  CudaGraph cuda_graph = CudaGraph::automatic;
  bool fuse = true, autotune = kDefaults.autotune;  // cuda: engines of convolutions
  std::optional<LossScaling> loss_scaling;          // default: dynamic with fp16, none elsewhere
  std::string data = "synthetic";
  int data_workers = 0;  // 0: the CPUs that training leaves
  std::int64_t image_size = model->image_size;
  Optimizer optimizer = Optimizer::sgd;
  double learning_rate = model->recipe.learning_rate, momentum = model->recipe.momentum;
  double weight_decay = model->recipe.weight_decay, label_smoothing = model->recipe.label_smoothing;
  DecayRule decay = DecayRule::all;
  std::string weights, batch, save_weights;  // safetensors files; empty: not asked for
  std::string log_dir = "logs", output = "runs";
  std::string reference;  // file; empty: Plumbline's own
  std::optional<int> run;
  std::string dialect;                  // "A,B": further logs
  int nodes = 0, devices_per_node = 0;  // 0: read from the hosts
  bool check = true;
  bool probe = true;  // of links between hosts, before a run
  WatchOptions watch;
  bool profile = false, trace = false;  // stamped iterations after the run
  std::uint64_t seed = 0;
  bool deterministic = kDefaults.deterministic;
  bool json = false, quiet = false, verbose = false;
  bool dry_run = false;
  std::string target;  // of a dry run: a name of targets(); empty: this machine's device
  bool list_targets = false, print_config = false;  // answered by main, too
  Questions questions;
};

// --comm auto|nccl|mpi; nccl is refused with Error(unavailable) by a build without.
OptionSpec communicator_option(std::string& target, const std::string& help);
// --timeout-s, --startup-timeout-s and --no-watchdog.
OptionGroup watchdog_options(WatchOptions& watch);

std::vector<std::string> target_names();  // of targets()
// --target: one of these, or the first words of several.
OptionSpec target_option(std::string& target, const std::string& help);

// Defaults of the program's first model, before a command line is read.
BenchOptions default_options(std::string_view program, std::span<const Model> catalogue = model_catalogue());

// The table of the model's program, bound to `options`, which must outlive it.
OptionTable bench_option_table(BenchOptions& options);

// Reads a command line of `program`, and cross-checks it unless help, version, targets or completions are
// asked for. Throws Error(usage); Error(unavailable) for a communicator that this build lacks.
BenchOptions parse_options(int argc, const char* const* argv, std::string_view program = "bench_resnet50",
                           std::span<const Model> catalogue = model_catalogue());

std::vector<OptionSpec> backbone_options(FaceOptions& options);
OptionGroup margin_group(FaceOptions& options);

// Throws Error(usage) for options that contradict each other, or that the model does not have.
void check_face(const FaceOptions& options, const Model& model);

// Fills in what is empty: what a run has is what its "config" says.
FaceOptions resolve_face(FaceOptions options, const Model& model);

// Throws Error(usage) for options that exclude each other.
void check_together(const BenchOptions& options);

// Fills in what device and world decide. Throws Error(usage) for what the device can't do.
BenchOptions resolve(BenchOptions options, const DeviceLimits& limits, int world_size);

// Whether gradients are exchanged, with `options` resolved: by a single rank only if --comm asks for it.
bool has_collectives(const BenchOptions& options, int world_size);

// What all ranks of a job must share, one "key=value" line per option, as given.
std::string options_fingerprint(const BenchOptions& options);
std::string fingerprint_of(const nlohmann::ordered_json& config);

// Every option and its value: "config" of result.json.
nlohmann::ordered_json options_json(const BenchOptions& options);

}  // namespace plumb
