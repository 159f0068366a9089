#include "bench/allreduce/measurements.h"

#include <gtest/gtest.h>

#include <sstream>

#include "bench/allreduce/allreduce_report.h"

namespace plumb {
namespace {

MeasuredTransfer of_one_millisecond(Collective::Kind kind, int ranks) {
  return {.kind = kind,
          .bytes = 1'000'000,
          .world_size = ranks,
          .times = {.iterations = {.min = 9e-4, .median = 1e-3, .max = 2e-3}}};
}

TEST(MeasuredTransfer, BandwidthsAreThoseOfNcclTests) {
  const MeasuredTransfer allreduce = of_one_millisecond(Collective::Kind::allreduce_sum, 4);
  EXPECT_DOUBLE_EQ(allreduce.algbw_bytes_per_second(), 1e9);
  EXPECT_DOUBLE_EQ(allreduce.busbw_bytes_per_second(), 1.5e9);
  const auto busbw = [](Collective::Kind kind, int ranks) {
    return of_one_millisecond(kind, ranks).busbw_bytes_per_second();
  };
  EXPECT_DOUBLE_EQ(busbw(Collective::Kind::allgather, 4), 0.75e9);
  EXPECT_DOUBLE_EQ(busbw(Collective::Kind::reduce_scatter_sum, 4), 0.75e9);
  EXPECT_DOUBLE_EQ(busbw(Collective::Kind::broadcast, 4), 1e9);
  EXPECT_DOUBLE_EQ(busbw(Collective::Kind::allreduce_sum, 1), 0);
  EXPECT_DOUBLE_EQ(busbw(Collective::Kind::broadcast, 1), 0);
}

TEST(MeasuredTransfer, AnIterationIsAsLongAsItsSlowestRank) {
  // Rank 0: 1, 2, 9; rank 1: 3, 1, 1.
  const RankTimes times = times_over_ranks(std::vector<double>{1, 2, 9, 3, 1, 1}, 2);
  EXPECT_EQ(times.iterations.min, 2);
  EXPECT_EQ(times.iterations.median, 3);
  EXPECT_EQ(times.iterations.max, 9);
  EXPECT_EQ(times.ranks.min, 1);
  EXPECT_EQ(times.ranks.max, 2);
  EXPECT_EQ(times.slowest_rank, 0);
}

TEST(MeasuredTransfer, JsonHasTheKeysOfTheCommandsPage) {
  AllreduceReport report{.world_size = 4,
                         .results = {of_one_millisecond(Collective::Kind::allreduce_sum, 4)}};
  const nlohmann::ordered_json json = document_json(kAllreduceSchema, report);
  EXPECT_EQ(json.at("schema"), "plumbline.allreduce/2");
  EXPECT_EQ(json.at("world_size"), 4);
  const auto& result = json.at("results").at(0);
  EXPECT_EQ(result.at("collective"), "allreduce");
  EXPECT_EQ(result.at("bytes"), 1'000'000);
  EXPECT_EQ(result.at("dtype"), "f32");
  EXPECT_EQ(result.at("in_place"), true);
  EXPECT_EQ(result.at("seconds"), 1e-3);
  EXPECT_EQ(result.at("algbw_bytes_per_second"), 1e9);
  EXPECT_EQ(result.at("busbw_bytes_per_second"), 1.5e9);
  EXPECT_EQ(result.at("wrong_elements"), 0);
}

TEST(AllreduceReport, FitsInto100ColumnsWithTheLargestMessages) {
  AllreduceReport report{.world_size = 1024, .nodes = 128, .devices_per_node = 8};
  MeasuredTransfer largest = of_one_millisecond(Collective::Kind::reduce_scatter_sum, 1024);
  largest.bytes = std::int64_t{1} << 34;
  largest.times = {.iterations = {12.3, 12.4, 12.5}, .ranks = {12.1, 12.2, 12.3}, .slowest_rank = 1023};
  report.results = {largest};
  std::istringstream text(to_text(report));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(AllreduceReport, SaysWhatOneRankMeasures) {
  const AllreduceReport report{.results = {of_one_millisecond(Collective::Kind::allreduce_sum, 1)}};
  EXPECT_NE(to_text(report).find("one rank sends nothing"), std::string::npos);
}

TEST(AllreduceReport, LinksHaveTheAllreducesInPlace) {
  MeasuredTransfer out_of_place = of_one_millisecond(Collective::Kind::allreduce_sum, 4);
  out_of_place.in_place = false;
  AllreduceReport report{.world_size = 4,
                         .nodes = 2,
                         .devices_per_node = 2,
                         .results = {out_of_place, of_one_millisecond(Collective::Kind::allreduce_sum, 4)}};
  report.options.comm = "mpi";
  const Links links = links_of(report, {{"a", 2}, {"b", 2}});
  ASSERT_EQ(links.allreduces.size(), 1u);
  EXPECT_EQ(links.allreduces[0].hosts, 2);
  EXPECT_EQ(links.allreduces[0].devices_per_host, 2);
  EXPECT_EQ(links.allreduces[0].bytes, 1'000'000);
  EXPECT_EQ(links.allreduces[0].seconds.median, 1e-3);
  EXPECT_NO_THROW(links_from_json(to_json(links), "links.json"));
}

}  // namespace
}  // namespace plumb
