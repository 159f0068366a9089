#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "models/arcface.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using Change = std::function<void(ModelOptions&)>;

void make(const Change& change) {
  ModelOptions options{.backbone = kMobileFaceNet, .embedding = 128};
  change(options);
  make_arcface(options);
}

TEST(ArcFaceLimits, RefusesAnEmbeddingThatKernelsCannotMove) {
  expect_error(ExitCode::usage, {"--embedding 12", "multiple of 8; pass 16"},
               [&] { make([](ModelOptions& o) { o.embedding = 12; }); });
}

TEST(ArcFaceLimits, RefusesFewerClassesThanRanksThatShareThemOut) {
  const auto with = [](Head head, std::int64_t classes, int ranks) {
    make([&](ModelOptions& o) { o.head = head, o.classes = classes, o.world_size = ranks; });
  };
  for (const Head head : {Head::sharded, Head::sampled}) {
    expect_error(ExitCode::usage, {"--classes 7", "8 ranks", "--head dp"}, [&] { with(head, 7, 8); });
    EXPECT_NO_THROW(with(head, 8, 8));
  }
  EXPECT_NO_THROW(with(Head::replicated, 7, 8));
  EXPECT_NO_THROW(with(Head::sampled, (std::int64_t{1} << 31) - 1, 1024));  // the most that 32 bits count
}

}  // namespace
}  // namespace plumb
