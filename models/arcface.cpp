#include "models/arcface.h"

#include <utility>

#include "base/error.h"
#include "models/margin_head.h"

namespace plumb {
namespace {

// insightface 7fadd420, arcface_torch/partial_fc_v2.py.
constexpr Initializer kClassCentres{Initializer::Kind::normal, 0.01};

// What the ranges of options leave open.
void check(const ModelOptions& options) {
  // Kernels move eight channels at a time.
  if (options.embedding % 8 != 0)
    throw Error(ExitCode::usage, "--embedding {}: expected a multiple of 8; pass {}", options.embedding,
                options.embedding / 8 * 8 + 8);
  if (options.head != Head::replicated && options.classes < options.world_size)
    throw Error(
        ExitCode::usage,
        "--classes {} is less than the {} ranks that share them; pass at least one per rank, or --head dp",
        options.classes, options.world_size);
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
