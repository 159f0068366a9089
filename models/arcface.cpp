#include "models/arcface.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/margin_head.h"

namespace plumb {
namespace {

constexpr std::int64_t kImageSizeStep = 16, kMinImageSize = 32, kMaxImageSize = 1024;

// insightface 7fadd420, arcface_torch/partial_fc_v2.py.
constexpr Initializer kClassCentres{Initializer::Kind::normal, 0.01};

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw Error(ExitCode::usage, "{} is out of range: give {}", what, remedy);
}

void check_head(const ModelOptions& options) {
  require_between(options.classes, 1, kMaxClasses, "number of classes", "--classes");
  require_between(options.world_size, 1, kMaxRanks, "number of ranks", "a number");
  require_between(options.rank, 0, options.world_size - 1, "rank", "a number");
  if (options.head != Head::replicated && options.classes < options.world_size)
    throw Error(
        ExitCode::usage,
        "--classes {} is less than the {} ranks that share them; pass at least one per rank, or --head dp",
        options.classes, options.world_size);
  if (!(options.sample_rate > 0 && options.sample_rate <= 1))
    refuse(fmt::format("sample rate {:g}", options.sample_rate), "--sample-rate above 0 and up to 1");
  const auto [m1, m2, m3] = options.margins;
  if (!std::isfinite(m1) || !std::isfinite(m2) || !std::isfinite(m3))
    refuse(fmt::format("margins {:g},{:g},{:g}", m1, m2, m3),
           "--margins as three finite numbers, like 1,0.5,0");
  if (!(options.scale > 0 && std::isfinite(options.scale)))
    refuse(fmt::format("scale {:g}", options.scale), "--scale as a number above 0, like 64");
}

void check(const ModelOptions& options) {
  require_between(options.batch, 1, kMaxBatch, "batch per device", "--bs");
  require_between(options.image_size, kMinImageSize, kMaxImageSize, "image size", "--image-size");
  if (options.image_size % kImageSizeStep != 0)
    refuse(fmt::format("image size {}", options.image_size),
           fmt::format("--image-size as a multiple of {}", kImageSizeStep));
  require_between(options.embedding, 1, kMaxEmbedding, "embedding", "--embedding");
  // Kernels move eight channels at a time.
  if (options.embedding % 8 != 0)
    refuse(fmt::format("embedding {}", options.embedding), "--embedding as a multiple of 8");
  if (!(options.dropout >= 0 && options.dropout < 1))
    refuse(fmt::format("dropout {:g}", options.dropout), "--dropout from 0 to below 1");
  check_head(options);
}

void add_head(ModelBuilder& net, ValueId features, const ModelOptions& options) {
  const bool replicated = options.head == Head::replicated;
  MarginLoss loss;
  loss.name = "head";
  loss.classes = options.classes;
  loss.margins = options.margins;
  loss.scale = options.scale;
  loss.gradient = options.gradient;
  loss.head = options.head;
  loss.rank = replicated ? 0 : options.rank;
  loss.world_size = replicated ? 1 : options.world_size;
  loss.sample_rate = options.head == Head::sampled ? options.sample_rate : 1;
  loss.seed = options.seed;
  const ClassShard shard = class_shard(loss.classes, loss.rank, loss.world_size);
  loss.first_class = shard.first;
  net.margin_loss(std::move(loss), features, shard.count, kClassCentres);
}

}  // namespace

Graph make_arcface(const ModelOptions& options) {
  check(options);
  ModelBuilder net(std::string(options.backbone.name), options.decay);
  const ValueId images = net.images(options.batch, options.image_size);
  add_head(net, options.backbone.add(net, images, options), options);
  return net.take();
}

}  // namespace plumb
