// The networks against golden text (tests/data/networks): operations, parameters in the order of the public
// models, how they start and decay, and totals as published.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "base/text.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/golden_text.h"

namespace plumb {
namespace {

std::string extent(const Graph& graph, ValueId value) {
  const Shape& shape = graph.values[value].shape;
  return fmt::format("{} {}x{}x{}", graph.values[value].name, shape.c, shape.h, shape.w);
}

std::string line_of(const Graph& graph, const Conv& op) {
  return fmt::format("conv {}: {} -> {}x{}/s{}/p{}/g{} -> {}, {} MACs", op.name, extent(graph, op.in),
                     op.kernel, op.kernel, op.stride, op.padding, op.groups, extent(graph, op.out),
                     macs_per_image(graph, op));
}
std::string line_of(const Graph& graph, const BatchNorm& op) {
  const auto& statistics = graph.statistics;
  return fmt::format("norm {}: {} -> {}{}{}{}, epsilon {}, momentum {}, starts at {} {}", op.name,
                     extent(graph, op.in), extent(graph, op.out),
                     op.residual ? " + " + graph.values[*op.residual].name : "",
                     op.activation == Activation::relu ? ", relu" : "",
                     op.slope ? ", " + graph.parameters[*op.slope].name : "", op.epsilon, op.momentum,
                     statistics[op.running_mean].initial, statistics[op.running_variance].initial);
}
std::string line_of(const Graph& graph, const Pool& op) {
  return fmt::format("{} {}: {} -> {}/s{}/p{} -> {}", op.kind == Pool::Kind::max ? "max" : "average", op.name,
                     extent(graph, op.in), op.kernel, op.stride, op.padding, extent(graph, op.out));
}
std::string line_of(const Graph& graph, const Dense& op) {
  return fmt::format("dense {}: {} -> {}, {} MACs", op.name, extent(graph, op.in), extent(graph, op.out),
                     macs_per_image(graph, op));
}
std::string line_of(const Graph& graph, const Dropout& op) {
  return fmt::format("dropout {}: {}, {} with seed {}", op.name, extent(graph, op.in), op.probability,
                     op.seed);
}
std::string line_of(const Graph& graph, const SoftmaxLoss& op) {
  return fmt::format("softmax {}: {}, smoothing {}", op.name, extent(graph, op.in), op.label_smoothing);
}
std::string line_of(const Graph& graph, const MarginLoss& op) {
  return fmt::format(
      "margin {}: {}, classes {} from {} on, margins {} {} {}, scale {}, {}, rank {} of {}, "
      "sample {} with seed {}",
      op.name, extent(graph, op.in), op.classes, op.first_class, op.margins.m1, op.margins.m2, op.margins.m3,
      op.scale, op.gradient == MarginLoss::Gradient::exact ? "exact" : "straight through", op.rank,
      op.world_size, op.sample_rate, op.seed);
}
std::string line_of(const Parameter& parameter) {
  constexpr const char* kKinds[] = {"constant", "normal", "uniform"};
  const auto kind = static_cast<std::size_t>(parameter.initializer.kind);
  return fmt::format("parameter {}: [{}], {} {:.6g}{}{}{}", parameter.name, fmt::join(parameter.dims, " "),
                     kKinds[kind], parameter.initializer.number, parameter.decays ? ", decays" : "",
                     parameter.trained ? "" : ", not trained",
                     parameter.shard ? fmt::format(", rows from {} of {}", parameter.shard->first_row,
                                                   parameter.shard->all_rows)
                                     : "");
}

// Totals, then a line per operation and per parameter whose name matches.
std::vector<std::string> lines_of(const Graph& graph, const char* keeps = "") {
  const std::regex kept(keeps);
  std::int64_t elements = 0, decaying = 0, channels = 0, trained = 0;
  for (const Parameter& parameter : graph.parameters) {
    elements += parameter.elements();
    decaying += parameter.decays;
    trained += parameter.trained ? parameter.elements() : 0;
  }
  for (const Statistic& statistic : graph.statistics) channels += statistic.channels;
  std::vector<std::string> lines{
      fmt::format("network {}: batch {}, head from {} on", graph.model, graph.batch(),
                  name_of(graph.ops[graph.head_begin])),
      fmt::format("totals backbone: {} parameters, {} MACs", backbone_parameter_count(graph),
                  macs_per_image(graph)),
      fmt::format("totals head: {} parameters, {} MACs", head_parameter_count(graph),
                  head_macs_per_image(graph)),
      fmt::format("totals tensors: {} parameters of {} elements, {} trained; {} decay; {} statistics of {}",
                  graph.parameters.size(), elements, trained, decaying, graph.statistics.size(), channels)};
  for (const Op& op : graph.ops)
    if (std::regex_search(name_of(op), kept))
      lines.push_back(std::visit([&](const auto& one) { return line_of(graph, one); }, op));
  for (const Parameter& parameter : graph.parameters)
    if (std::regex_search(parameter.name, kept)) lines.push_back(line_of(parameter));
  return lines;
}

TEST(Networks, ResNet50) {
  GoldenCases cases;
  ResNet50Options options;
  cases.add("by default", lines_of(make_resnet50(options)));
  for (const auto& [name, rule] :
       {std::pair{"no bn", DecayRule::no_bn}, {"weights", DecayRule::weights_only}}) {
    options.decay = rule;
    cases.add_whole(fmt::format("decay of {}", name), lines_of(make_resnet50(options), "^(conv1|bn1|fc)"));
  }
  cases.add_whole("another image",
                  lines_of(make_resnet50({.batch = 3, .image_size = 65, .classes = 10}), "4.2|fc"));
  cases.add_whole("a larger one", lines_of(make_resnet50({.image_size = 448}), "layer4.2|fc"));
  expect_golden("networks/resnet50.txt", cases.text());
}

ModelOptions options_of(Backbone backbone, std::int64_t embedding = 512) {
  return {.backbone = backbone, .embedding = embedding};
}

TEST(Networks, IResNets) {
  GoldenCases cases;
  cases.add("by default", lines_of(make_arcface(options_of(kIResNet50))));
  cases.add_whole("r100", lines_of(make_arcface(options_of(kIResNet100)), "layer2.12|layer3.29|fc"));
  ModelOptions options = options_of(kIResNet50);
  options.prelu_per_layer = true;
  cases.add("PLSC's", lines_of(make_arcface(options)));
  for (const DecayRule rule : {DecayRule::no_bn, DecayRule::weights_only}) {
    options = options_of(kIResNet50);
    options.decay = rule;
    cases.add_whole(rule == DecayRule::no_bn ? "decay of no bn" : "decay of weights",
                    lines_of(make_arcface(options), "^[^l]|layer1.0"));
  }
  options = options_of(kIResNet50);
  options.dropout = 0, options.image_size = 48;
  cases.add_whole("no dropout, small images", lines_of(make_arcface(options), "layer4.2|^[^l]"));
  expect_golden("networks/iresnet50.txt", cases.text());
}

TEST(Networks, MobileFaceNet) {
  GoldenCases cases;
  ModelOptions options = options_of(kMobileFaceNet, 128);
  cases.add("by default", lines_of(make_arcface(options)));
  cases.add("512 features", lines_of(make_arcface(options_of(kMobileFaceNet))));
  options.decay = DecayRule::no_bn;
  cases.add_whole("decay of no bn", lines_of(make_arcface(options), "^conv_1"));
  options.image_size = 32;
  cases.add_whole("small images", lines_of(make_arcface(options), "conv_6dw|pre_fc1"));
  expect_golden("networks/mobilefacenet.txt", cases.text());
}

// Class centers by rank: replicated ones on each, others shared out; of a sample the loss has a part.
TEST(Networks, Heads) {
  GoldenCases cases;
  for (const Head head : {Head::replicated, Head::sharded, Head::sampled})
    for (const int rank : {0, 1, 3}) {
      ModelOptions options = options_of(kMobileFaceNet, 128);
      options.batch = 2;
      options.classes = 1003;  // 251, 251, 251, 250 on the ranks
      options.margins = {1, 0.3, 0.2};
      options.scale = 30;
      options.gradient = MarginLoss::Gradient::straight_through;
      options.head = head;
      options.sample_rate = 0.5;
      options.world_size = 4;
      options.rank = rank;
      options.seed = 4;
      constexpr const char* kHeads[] = {"replicated", "sharded", "sampled"};
      cases.add_whole(fmt::format("{}, rank {}", kHeads[static_cast<int>(head)], rank),
                      lines_of(make_arcface(options), "head"));
    }
  expect_golden("networks/heads.txt", cases.text());
}

}  // namespace
}  // namespace plumb
