// Margin losses over class centers: those of one rank, and a rank's part in a head that several share.
#include <cmath>

#include "models/margin_head.h"
#include "tests/conformance/device_under_test.h"

namespace plumb {
namespace {

class MarginHeads : public Conformance {
 protected:
  struct Case {
    std::int64_t images = 4, embedding = 8, classes = 10;
    Head head = Head::replicated;
    int rank = 0, ranks = 1;
    double sample_rate = 1;
    Margins margins = {1, 0.5, 0};
    double scale = 16;
    MarginLoss::Gradient gradient = MarginLoss::Gradient::exact;
  };
  static Graph graph_of(const Case& by) {
    GraphBuilder b({by.images, 1, 1, 3});
    const ValueId features = b.dense(b.conv(GraphBuilder::kImages, 8, {}), by.embedding);
    Graph graph = b.loss(features);
    const ClassShard shard = class_shard(by.classes, by.rank, by.ranks);
    Parameter centers{.name = "head.weight", .dims = {shard.count, by.embedding}};
    if (by.head != Head::replicated) centers.shard = RowShard{shard.first, by.classes};
    graph.parameters.push_back(centers);
    graph.ops.back() = MarginLoss{.name = "head",
                                  .in = features,
                                  .weight = graph.parameters.size() - 1,
                                  .classes = by.classes,
                                  .first_class = shard.first,
                                  .margins = by.margins,
                                  .scale = by.scale,
                                  .gradient = by.gradient,
                                  .head = by.head,
                                  .rank = by.rank,
                                  .world_size = by.ranks,
                                  .sample_rate = by.sample_rate,
                                  .seed = 5};
    graph.head_begin = graph.ops.size() - 2;
    return graph;
  }
  // Labels `stride` apart, beginning at `first`; they repeat once they wrap around.
  static void expect_head(const Case& by, std::int64_t stride = 7, std::int64_t first = 0) {
    SCOPED_TRACE(testing::Message() << by.images << " images, " << by.classes << " x " << by.embedding
                                    << ", rank " << by.rank << " of " << by.ranks);
    const Graph graph = graph_of(by);
    TestTensors tensors = random_tensors(graph, 7);
    for (std::size_t i = 0; i < tensors.labels.size(); ++i)
      tensors.labels[i] = (first + static_cast<std::int64_t>(i) * stride) % by.classes;
    expect_conforms(graph, {.iterations = by.head == Head::sampled ? 2 : 1}, tensors);
  }
};
using LargeMarginHeads = MarginHeads;

// Fewer classes than one access, than a round of a block, several shares; images that fill no group.
TEST_F(MarginHeads, OfAllClasses) {
  for (const auto& [images, embedding, classes] : {std::array<std::int64_t, 3>{1, 8, 1},
                                                   {5, 24, 3},
                                                   {4, 16, 257},
                                                   {7, 8, 2053},
                                                   {5, 24, 9001},
                                                   {6, 136, 4096},
                                                   {5, 512, 33}})
    expect_head({.images = images, .embedding = embedding, .classes = classes}, 417);
}

// 1024 blocks, of which a GPU runs 3 or 4 per multiprocessor; several rounds of columns to a block.
TEST_F(MarginHeads, OfMoreBlocksThanRunAtOnce) {
  const Graph graph = graph_of({.images = 1024, .embedding = 8, .classes = 7 * 1024 + 1});
  expect_conforms(graph, offers().front(), {}, random_tensors(graph, 7));
}

// More groups of images than a grid's second dimension has blocks; cuda_host has a test of its
// corners.
TEST_F(LargeMarginHeads, OfTheImagesOf2048Gpus) {
  const Graph graph =
      graph_of({.images = 128, .classes = 2048, .head = Head::sharded, .rank = 7, .ranks = 2048});
  expect_conforms(graph, offers().front(), {}, random_tensors(graph, 7));
}

TEST_F(MarginHeads, OfEveryMargin) {
  using enum MarginLoss::Gradient;
  for (const auto& [margins, gradient] : {std::pair{Margins{1, 0.5, 0}, straight_through},
                                          {Margins{1, 0, 0.4}, exact},
                                          {Margins{1, 0.3, 0.2}, exact},
                                          {Margins{1.2, 0.3, 0.2}, straight_through}})
    expect_head({.images = 6, .classes = 51, .margins = margins, .scale = 64, .gradient = gradient});
}

// A shard in the middle and at the ends; labels of one class only, which other ranks have; then also ranks
// without a row.
TEST_F(MarginHeads, OfARankAmongOthers) {
  for (const Head head : {Head::sharded, Head::sampled})
    for (const int rank : {0, 1, 2}) {
      const Case by{.images = 6,
                    .embedding = 24,
                    .classes = 40,
                    .head = head,
                    .rank = rank,
                    .ranks = 3,
                    .sample_rate = 0.5};
      expect_head(by);
      expect_head(by, 0, 39);
      if (head == Head::sampled) {
        Case labels_only = by;
        labels_only.sample_rate = 0.001;
        expect_head(labels_only, 0, 39);
      }
    }
}

// More labels than samples, all classes, no label, duplicates, labels next to a shard's border, several
// blocks of candidates.
TEST_F(MarginHeads, OfASampleOfTheClasses) {
  for (const auto& [images, classes, rate, stride] :
       {std::tuple<std::int64_t, std::int64_t, double, std::int64_t>{8, 40, 0.03, 3},
        {8, 10, 1, 1},
        {6, 50, 0.1, 13},
        {300, 100, 0.2, 7},
        {16, 20000, 0.25, 997},
        {700, 600, 0.3, 11}})
    expect_head({.images = images, .classes = classes, .head = Head::sampled, .sample_rate = rate}, stride);
  if (!on_gpu())  // in fp16 gradients of so many classes are subnormal
    expect_head({.classes = 60000, .head = Head::sampled, .sample_rate = 0.5}, 997);
}

// Cosines near -1, and far into the classes near 1.
TEST_F(MarginHeads, OfLogitsThatGrowLate) {
  const Graph graph = graph_of({.images = 1, .classes = 700, .scale = 64});
  TestTensors tensors = random_tensors(graph, 7);
  std::fill(tensors.parameters[1].begin(), tensors.parameters[1].end(), 0.0F);
  tensors.parameters[2] = {1, 2, 0, -1, 1, 0.5, 0, 3};  // the features: the dense layer's bias
  for (std::size_t i = 0; i < tensors.parameters.back().size(); ++i) {
    float& center = tensors.parameters.back()[i];
    center = (0.05F * center - tensors.parameters[2][i % 8]) * (i / 8 == 600 ? -1.0F : 1.0F);
  }
  tensors.labels = {5};
  expect_conforms(graph, {}, tensors);
}

// acos and 1 / sin at cosines of 1 and -1; features of no length.
TEST_F(MarginHeads, StayFiniteWhereFeaturesLieOnACenter) {
  const Graph graph = graph_of({.images = 3, .classes = 4, .scale = 64});
  TestTensors tensors = random_tensors(graph, 7);
  std::vector<float>& centers = tensors.parameters.back();
  for (std::vector<float>* weight : {&tensors.parameters[0], &tensors.parameters[1], &tensors.parameters[2]})
    std::fill(weight->begin(), weight->end(), 0.0F);
  tensors.parameters[2] = {1, 2, 0, 0, 1, 0, 0, 0};  // the features of every image: the dense layer's bias
  std::copy_n(tensors.parameters[2].begin(), 8, centers.begin());
  for (std::size_t e = 0; e < 8; ++e) centers[8 + e] = -2 * tensors.parameters[2][e];
  tensors.labels = {0, 1, 2};
  for (const bool none : {false, true}) {
    if (none) std::fill(tensors.parameters[2].begin(), tensors.parameters[2].end(), 0.0F);
    for (const Offer& offer : offers()) {
      if (!fits(graph, offer) || offer.compute_capability != 0) continue;
      SCOPED_TRACE(offer.name);
      CheckedProgram program(*device(), graph, {}, describe(graph, offer.describe, device()->limits()));
      program.write(tensors);
      program.write(StepState{});
      for (InstructionId id = 0; id < program.program().instructions.size(); ++id) {
        program.run(id);
        const auto* gradient = program.program().instructions[id].as<MarginGradient>();
        if (!gradient) continue;
        EXPECT_TRUE(std::isfinite(device()->metrics(0).loss));
        for (double value : program.held(gradient->products)) EXPECT_TRUE(std::isfinite(value));
      }
    }
  }
}

TEST_F(MarginHeads, OfWhatIsNotFiniteHaveALossThatIsNoNumber) {
  const Graph graph = graph_of({.images = 3, .classes = 300});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TestTensors tensors = random_tensors(graph, 7);
    tensors.parameters.back()[299 * 8 + 3] = bad;
    for (const Offer& offer : offers()) {
      if (!fits(graph, offer) || offer.compute_capability != 0) continue;
      CheckedProgram program(*device(), graph, {}, describe(graph, offer.describe, device()->limits()));
      program.write(tensors);
      program.write(StepState{});
      for (InstructionId id = 0; id < program.program().instructions.size(); ++id) program.run(id);
      EXPECT_TRUE(std::isnan(device()->metrics(0).loss)) << offer.name;
    }
  }
}

}  // namespace
}  // namespace plumb
