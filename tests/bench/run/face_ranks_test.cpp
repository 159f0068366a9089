// Sharded heads over MPI against the replicated head: same losses, and same weights after some steps.
#include "tests/bench/run/face_ranks.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "models/arcface.h"
#include "models/margin_head.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

// ASSERT would return on one rank only: rank 0 holds the centers.
void expect_near(const std::vector<float>& values, const std::vector<float>& wanted, const char* what) {
  EXPECT_EQ(values.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < std::min(values.size(), wanted.size()); ++i) {
    if (std::abs(values[i] - wanted[i]) <= 1e-5f) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << values[i] << ", not " << wanted[i];
    return;
  }
}

void expect_same(const FaceRun& run, const FaceRun& wanted) {
  for (std::size_t i = 0; i < wanted.losses.size(); ++i)
    EXPECT_NEAR(run.losses.at(i) / wanted.losses[i], 1, 1e-5) << "iteration " << i;
  EXPECT_EQ(run.top1, wanted.top1);
  expect_near(run.backbone, wanted.backbone, "backbone");
  expect_near(run.centers, wanted.centers, "class centers");
}

class FaceRanks : public MpiTest {
 protected:
  std::size_t images(std::int64_t per_rank = SmallFaceNet::kImages) const {
    return static_cast<std::size_t>(per_rank * job().size());
  }
  ClassShard shard(std::int64_t classes, int rank) const { return class_shard(classes, rank, job().size()); }
  FaceRun train(FaceTraining training, Head head) const {
    training.head = head;
    return train_faces(job(), training);
  }
  // pfc samples all classes: SmallFaceNet::sample_rate is 1.
  void expect_heads_agree(const FaceTraining& training) const {
    const FaceRun replicated = train(training, Head::replicated);
    for (double loss : replicated.losses) EXPECT_TRUE(std::isfinite(loss) && loss > 0) << loss;
    expect_same(train(training, Head::sharded), replicated);
    expect_same(train(training, Head::sampled), replicated);
  }
  std::vector<std::int64_t> mixed_labels(std::int64_t classes, std::size_t count) const {
    std::vector<std::int64_t> labels(count);
    for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<std::int64_t>(i * 37 + 11) % classes;
    return labels;
  }
};

TEST_F(FaceRanks, GiveWhatAWholeHeadGives) {
  expect_heads_agree({.graph = SmallFaceNet{}, .labels = mixed_labels(101, images()), .iterations = 5});
}

TEST_F(FaceRanks, GiveTheSameWithoutOverlap) {
  FaceTraining training{.graph = SmallFaceNet{}, .labels = mixed_labels(101, images())};
  const FaceRun with = train(training, Head::sharded);
  training.overlap = false;
  expect_same(train(training, Head::sharded), with);
}

TEST_F(FaceRanks, HoldWithLabelsOnTheBordersOfShards) {
  std::vector<std::int64_t> labels(images());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const ClassShard own = shard(101, static_cast<int>(i / 2) % job().size());
    labels[i] = i % 2 == 0 ? own.first : own.first + own.count - 1;
  }
  expect_heads_agree({.graph = SmallFaceNet{}, .labels = labels});
}

TEST_F(FaceRanks, HoldWhereOneShardHasAllLabels) {
  const ClassShard last = shard(101, job().size() - 1);
  std::vector<std::int64_t> labels(images());
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = last.first + static_cast<std::int64_t>(i * 5) % last.count;
  expect_heads_agree({.graph = SmallFaceNet{}, .labels = labels});
}

TEST_F(FaceRanks, HoldWhereAllImagesHaveOneLabel) {
  expect_heads_agree({.graph = SmallFaceNet{}, .labels = std::vector<std::int64_t>(images(), 60)});
}

TEST_F(FaceRanks, HoldWithOneClassOnMostRanks) {
  const std::int64_t classes = job().size() + 1;
  expect_heads_agree({.graph = SmallFaceNet{.classes = classes}, .labels = mixed_labels(classes, images())});
}

TEST_F(FaceRanks, HoldForTheFullScale) {
  expect_heads_agree(
      {.graph = SmallFaceNet{.scale = 64}, .labels = mixed_labels(101, images()), .iterations = 2});
}

// One step only: norms over so few pixels amplify rounding in the second.
TEST_F(FaceRanks, HoldForMobileFaceNet) {
  const auto graph = [](Head head, int rank, int world_size) {
    return make_arcface({.backbone = kMobileFaceNet,
                         .batch = 4,
                         .image_size = 32,
                         .embedding = 32,
                         .classes = 50,
                         .scale = 16,
                         .head = head,
                         .sample_rate = 1,
                         .rank = rank,
                         .world_size = world_size});
  };
  expect_heads_agree({.graph = graph, .labels = mixed_labels(50, images(4)), .iterations = 1});
}

// Rows changed by a step, per rank: weight decay moves every row the update touches.
TEST_F(FaceRanks, UpdateTheSampleOnlyAndEveryLabel) {
  const SmallFaceNet net{.classes = 203, .sample_rate = 0.1};
  const std::vector<std::int64_t> labels = mixed_labels(203, images());
  FaceTraining training{.graph = net, .labels = labels, .iterations = 0};
  const FaceRun before = train(training, Head::sampled);
  training.iterations = 1;
  const FaceRun after = train(training, Head::sampled);
  if (job().rank() != 0) return;
  for (int rank = 0; rank < job().size(); ++rank) {
    const ClassShard own = shard(203, rank);
    std::set<std::int64_t> positives;
    std::int64_t changed = 0;
    for (std::int64_t label : labels)
      if (label >= own.first && label < own.first + own.count) positives.insert(label);
    for (std::int64_t row = own.first; row < own.first + own.count; ++row) {
      const auto begin = static_cast<std::ptrdiff_t>(row * 16);
      const bool same = std::equal(before.centers.begin() + begin, before.centers.begin() + begin + 16,
                                   after.centers.begin() + begin);
      changed += !same;
      if (positives.contains(row)) {
        EXPECT_FALSE(same) << "label " << row;
      }
    }
    EXPECT_EQ(changed, std::max<std::int64_t>(sampled_rows(0.1, own.count),
                                              static_cast<std::int64_t>(positives.size())))
        << "rank " << rank;
  }
}

TEST_F(FaceRanks, TakeMoreLabelsThanTheSampleHasPlacesFor) {
  const SmallFaceNet net{.sample_rate = 0.01};  // one row or none per shard
  const FaceRun run = train({.graph = net, .labels = mixed_labels(101, images())}, Head::sampled);
  for (double loss : run.losses) EXPECT_TRUE(std::isfinite(loss)) << loss;
  for (float value : run.centers) ASSERT_TRUE(std::isfinite(value));
}

TEST_F(FaceRanks, MeetInTheOrderOfThePublishedHeads) {
  const FaceRun run = train({.graph = SmallFaceNet{}, .labels = mixed_labels(101, images())}, Head::sharded);
  if (job().size() == 1) {
    EXPECT_TRUE(run.sent.empty());
    return;
  }
  const std::vector<std::string> head{"head.features.allgather",      "head.labels.allgather",
                                      "head.row_max.allreduce",       "head.row_sums.allreduce",
                                      "head.features.reduce_scatter", "bucket0.allreduce"};
  ASSERT_GE(run.sent.size(), head.size());
  EXPECT_EQ(std::vector(run.sent.begin(), run.sent.begin() + static_cast<std::ptrdiff_t>(head.size())), head);
}

}  // namespace
}  // namespace plumb
