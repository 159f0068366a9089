#include "results/record/schema.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/bench/expect_error.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

Json reread(const Json& json) {
  return to_json(run_record_from_json(json, "result.json"));
}

GpuRecord a_gpu(int rank) {
  GpuRecord gpu;
  gpu.rank = rank;
  gpu.name = "NVIDIA H200";
  gpu.id = "GPU-" + std::to_string(rank);
  gpu.driver_version = "580.65";
  gpu.highest_sm_clock_mhz = 1980;
  gpu.window_seconds = 12.5;
  gpu.sample_count = 62;
  gpu.sm_clock_mhz = {1410, 1700, 1980};
  gpu.power_watts = {650, 690, 700.5};
  gpu.throttle_reasons = {{"power cap", 0.75}, {"thermal", 0.02}};
  gpu.throttled_share = 0.76;
  gpu.joules = 8625;
  if (rank == 0)
    gpu.samples = {{0.1, 0.3}, {1980, 1410}, {3201, 3201}, {61, 62}, {650, 700.5}, {false, true}};
  return gpu;
}

// With all that a run may have.
RunRecord full_example() {
  RunRecord record = example_run(100);
  record.energy_joules_per_image = 0.75;
  record.loss_scale = {65536, 32768};
  record.skipped_iterations = 1;
  record.gpus = {a_gpu(0), a_gpu(1)};
  record.ranks = {{"node1", 0.01, 0.3, 0.001, 0}, {"node2", 0.002, {}, {}, 1}};
  record.links = Links{
      .comm = "mpi", .hosts = {{"node1", 2}, {"node2", 2}}, .pairs = {{"node1", "node2", {5e-5, 1.18e8}}}};
  record.collectives = {
      collective_record("bucket0.allreduce", "allreduce_sum", 4000, std::vector<double>{0.5, 0.25})};
  record.sent_bytes_per_step = 102e6;
  record.bus_bytes_per_second = 1.25e9;
  record.winograd_ops = {"layer1.0.conv2.forward"};
  record.ranks_per_gpu = 2;
  record.warnings = {"a warning"};
  return record;
}

TEST(RunRecord, SurvivesTheRoundTrip) {
  for (const RunRecord& record : {example_run(100), full_example()}) {
    const Json json = to_json(record);
    EXPECT_EQ(reread(Json::parse(json.dump())).dump(), json.dump());
  }
  const RunRecord back = run_record_from_json(to_json(full_example()), "x");
  EXPECT_EQ(back.loss_scale, full_example().loss_scale);
  EXPECT_TRUE(back.gpus.at(0).samples.throttled.at(1));
  EXPECT_EQ(back.gpus[1].throttle_reasons.at("power cap"), 0.75);
  EXPECT_FALSE(back.ranks.at(1).compute_seconds);
  EXPECT_EQ(back.links->pairs.at(0).link.bytes_per_second, 1.18e8);
  EXPECT_EQ(back.collectives.at(0).seconds.median, 0.375);
}

TEST(RunRecord, IsReadFromVersion1) {
  const Json json = to_json(full_example());
  Json old = json;
  const auto rename = [](Json& object, const char* now, const char* before) {
    object[before] = object.at(now);
    object.erase(now);
  };
  old["schema"] = "plumbline.result/1";
  rename(old, "warnings", "remarks");
  rename(old, "winograd_ops", "winograd_steps");
  for (Json& gpu : old["gpus"]) {
    if (gpu.contains("samples")) rename(gpu, "samples", "moments");
    rename(gpu, "sample_count", "samples");
    rename(gpu, "throttle_reasons", "clock_reasons");
  }
  EXPECT_EQ(reread(old).dump(), json.dump());
  old["gpus"][1].erase("samples");
  expect_error(ExitCode::bad_data, {"'gpus[1].samples': it is missing"}, [&] { reread(old); });
  old["schema"] = "plumbline.result/0";
  expect_error(ExitCode::bad_data, {"'schema': unknown schema 'plumbline.result/0'"}, [&] { reread(old); });
}

// Keys that only some runs have may be missing, all others may not; none may be of another type.
void expect_checked(const Json& good, const std::string& pointer, const std::string& prefix) {
  const Json& object = good.at(Json::json_pointer(pointer));
  for (const auto& [key, value] : object.items()) {
    SCOPED_TRACE(prefix + key);
    Json broken = good;
    broken[Json::json_pointer(pointer + "/" + key)] = value.is_string() ? Json(1) : Json("text");
    expect_error(ExitCode::bad_data, {"result.json", "'" + prefix + key + "'"}, [&] { reread(broken); });
    broken = good;
    broken.at(Json::json_pointer(pointer)).erase(key);
    if (to_json(example_run(100)).contains(key) || !prefix.empty())
      expect_error(ExitCode::bad_data, {"'" + prefix + key + "'", "missing"}, [&] { reread(broken); });
    else
      reread(broken);
  }
}

TEST(RunRecord, NamesEachKeyThatIsMissingOrOfAnotherType) {
  RunRecord record = full_example();
  record.gpus = {a_gpu(1), a_gpu(1)};  // without samples, which may be missing
  const Json good = to_json(record);
  expect_checked(good, "", "");
  expect_checked(good, "/images_per_second", "images_per_second.");
  expect_checked(good, "/gpus/0", "gpus[0].");
  expect_checked(good, "/collectives/0", "collectives[0].");
}

// Figures of nccl-tests, doc/PERFORMANCE.md: 2 (n - 1) / n for an allreduce, (n - 1) / n for the others.
TEST(RunRecord, BusBandwidthIsThatOfNcclTests) {
  const std::vector<double> seconds{0.5, 0.25, 1, 0.5};
  const CollectiveRecord sum = collective_record("bucket0.allreduce", "allreduce_sum", 4000, seconds);
  EXPECT_EQ(sum.bus_bytes_per_second.min, 6000);
  EXPECT_EQ(sum.bus_bytes_per_second.median, 12000);
  EXPECT_EQ(sum.bus_bytes_per_second.max, 24000);
  EXPECT_EQ(sum.slowest_rank, 2);
  EXPECT_EQ(sum.last_rank, 1);
  EXPECT_EQ(bus_factor("allreduce_max", 2), 1);
  EXPECT_EQ(bus_factor("allgather", 4), 0.75);
  EXPECT_EQ(bus_factor("reduce_scatter_sum", 8), 0.875);
  const std::vector<double> unseen{0, 0};
  EXPECT_EQ(collective_record("a", "allgather", 4, unseen).bus_bytes_per_second.max, 0);
}

TEST(TotalJoules, CountsEveryGpuOnceAndOnlyIfAllTell) {
  std::vector<GpuRecord> gpus = {a_gpu(0), a_gpu(1)};
  EXPECT_EQ(total_joules(gpus, 2), 2 * 8625);
  EXPECT_FALSE(total_joules(gpus, 3));
  EXPECT_FALSE(total_joules({}, 0));
  gpus[1].id = gpus[0].id;  // ranks share a GPU
  EXPECT_EQ(total_joules(gpus, 2), 8625);
  gpus[1].joules.reset();
  EXPECT_FALSE(total_joules(gpus, 2));
}

TEST(RunRecord, OfAFailedRunMayStopAnywhereAndHoldNaN) {
  RunRecord record = example_run(100);
  record.status = "failed";
  record.failure = "loss is not finite";
  record.loss = {7, std::nan("")};
  record.rank_window_seconds.clear();
  const RunRecord read = run_record_from_json(Json::parse(to_json(record).dump()), "result.json");
  EXPECT_EQ(read.failure, record.failure);
  EXPECT_TRUE(std::isnan(read.loss.at(1)));
}

TEST(ImagesPerSecond, DividesByTheLongestWindowOfAnyRank) {
  const ImagesPerSecond speed = images_per_second({9, 0.5, 0.25, 1}, {1.75, 2}, 1, 16);
  EXPECT_EQ(speed.mean, 24);
  EXPECT_EQ(speed.median, 32);
  EXPECT_EQ(speed.min, 16);
  EXPECT_EQ(speed.max, 64);
}

TEST(ImagesPerSecond, IsZeroWithoutAWindow) {
  EXPECT_EQ(images_per_second({1, 1}, {1}, 2, 16).mean, 0);
  EXPECT_EQ(images_per_second({}, {}, 0, 16).max, 0);
}

TEST(ImagesPerSecond, RefusesStepsThatTookNoTime) {
  expect_error(ExitCode::internal, {"step 1"}, [] { images_per_second({1, 0}, {1}, 0, 16); });
}

}  // namespace
}  // namespace plumb
