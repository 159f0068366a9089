#include "results/record/schema.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

RunRecord example() {
  RunRecord record;
  record.status = "ok";
  record.model = "resnet50";
  record.precision = "fp32";
  record.device = "cpu";
  record.device_name = "some CPU";
  record.batch_per_device = 8;
  record.world_size = record.devices_per_node = 2;
  record.iterations = 3;
  record.warmup = 1;
  record.step_seconds = {0.5, 0.25, 0.125};
  record.loss = {7, 6.9, 6.8};
  record.images_per_second = {40, 96, 64, 128};
  record.rank_window_seconds = {0.375, 0.4};
  record.exposed_communication_seconds = 0.01;
  record.parameters = 25557032;
  record.macs_per_image = 4089184256;
  record.memory_bytes = {{"peak", 3}, {"parameters", 1}, {"planned", 2}};
  record.checks = {{"replicas identical", true}, {"loss finite", "skipped"}};
  record.config = {{"bs", 8}};
  record.log_files = {"logs/1n2g/resnet50_b8_fp32_1.log"};
  return record;
}

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
  gpu.samples = 62;
  gpu.sm_clock_mhz = {1410, 1700, 1980};
  gpu.power_watts = {650, 690, 700.5};
  gpu.clock_reasons = {{"power cap", 0.75}, {"thermal", 0.02}};
  gpu.throttled_share = 0.76;
  gpu.joules = 8625;
  gpu.energy_source = "counter";
  if (rank == 0) gpu.moments = {{0.1, 1980, 3201, 61, 650, false}, {0.3, 1410, 3201, 62, 700.5, true}};
  return gpu;
}

// With all that a run may have.
RunRecord full_example() {
  RunRecord record = example();
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
  record.probed_bytes_per_second = 1.5e9;
  record.modeled_exchange_seconds = 0.07;
  record.largest_checked_message_bytes = 1048576;
  record.winograd_steps = {"layer1.0.conv2.forward"};
  record.ranks_per_gpu = 2;
  record.odd_hosts = {"host n3 is unlike the others"};
  record.remarks = {"a remark"};
  return record;
}

TEST(RunRecord, SurvivesTheRoundTrip) {
  for (const RunRecord& record : {example(), full_example()}) {
    const Json json = to_json(record);
    EXPECT_EQ(reread(Json::parse(json.dump())).dump(), json.dump());
  }
  const RunRecord back = run_record_from_json(to_json(full_example()), "x");
  EXPECT_EQ(back.loss_scale, full_example().loss_scale);
  EXPECT_TRUE(back.gpus.at(0).moments.at(1).throttled);
  EXPECT_EQ(back.gpus[1].clock_reasons.at("power cap"), 0.75);
  EXPECT_FALSE(back.ranks.at(1).compute_seconds);
  EXPECT_EQ(back.links->pairs.at(0).link.bytes_per_second, 1.18e8);
  EXPECT_EQ(back.collectives.at(0).seconds.median, 0.375);
  EXPECT_DOUBLE_EQ(exchange_seconds(back).value(), 102e6 / 1.25e9);
  EXPECT_FALSE(exchange_seconds(example()));
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
    if (to_json(example()).contains(key) || !prefix.empty())
      expect_error(ExitCode::bad_data, {"'" + prefix + key + "'", "missing"}, [&] { reread(broken); });
    else
      reread(broken);
  }
}

TEST(RunRecord, NamesEachKeyThatIsMissingOrOfAnotherType) {
  RunRecord record = full_example();
  record.gpus = {a_gpu(1), a_gpu(1)};  // without moments, which may be missing
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

TEST(ThrottlingText, NamesRankReasonsAndClocks) {
  EXPECT_EQ(
      throttling_text(a_gpu(1)),
      "rank 1's GPU was throttled in 76 % of the window (power cap 75 %, thermal 2 %), SM clock 1410 to "
      "1980 of 1980 MHz");
  GpuRecord gpu = a_gpu(1);
  gpu.throttled_share = 0.001;
  EXPECT_NE(throttling_text(gpu).find("in under 1 % of"), std::string::npos);
  gpu.throttled_share = 0;
  EXPECT_EQ(throttling_text(gpu), "");
}

TEST(RunRecord, HasItsKeysInTheirOrder) {
  std::string keys;
  const Json json = to_json(example());
  for (const auto& [key, value] : json.items()) keys += key + " ";
  EXPECT_EQ(
      keys,
      "schema status failure model precision device device_name batch_per_device world_size nodes "
      "devices_per_node iterations warmup step_seconds loss images_per_second rank_window_seconds "
      "exposed_communication_seconds data_wait_seconds parameters macs_per_image memory_bytes checks config "
      "log_files energy_joules_per_image ");
  EXPECT_EQ(to_json(example())["memory_bytes"].dump(), R"({"parameters":1,"peak":3,"planned":2})");
  EXPECT_TRUE(to_json(example())["energy_joules_per_image"].is_null());
}

TEST(RunRecord, OfAFailedRunMayStopAnywhereAndHoldNaN) {
  RunRecord record = example();
  record.status = "failed";
  record.failure = "loss is not finite";
  record.loss = {7, std::nan("")};
  record.rank_window_seconds.clear();
  const RunRecord read = run_record_from_json(Json::parse(to_json(record).dump()), "result.json");
  EXPECT_EQ(read.failure, record.failure);
  EXPECT_TRUE(std::isnan(read.loss.at(1)));
}

TEST(RunRecord, IgnoresKeysThatItDoesNotKnow) {
  const Json good = to_json(example());
  Json later = good;
  later["later"] = {{"seconds", 1}};
  later["images_per_second"]["later"] = 1;
  EXPECT_EQ(reread(later).dump(), good.dump());
}

TEST(RunRecord, NamesValuesThatCantBe) {
  const auto expect_refused = [](const char* pointer, const Json& value, const std::string& key) {
    Json broken = to_json(full_example());
    broken[Json::json_pointer(pointer)] = value;
    expect_error(ExitCode::bad_data, {"'" + key + "'"}, [&] { reread(broken); });
  };
  expect_refused("/schema", "plumbline.result/2", "schema");
  expect_refused("/status", "fine", "status");
  expect_refused("/world_size", 0, "world_size");
  expect_refused("/world_size", 3, "ranks");
  expect_refused("/rank_window_seconds", Json::array({0.4}), "rank_window_seconds");
  expect_refused("/nodes", 1.5, "nodes");
  expect_refused("/parameters", -1, "parameters");
  expect_refused("/parameters", 18446744073709551615u, "parameters");
  expect_refused("/nodes", 4294967297, "nodes");
  expect_refused("/warmup", 3, "warmup");
  expect_refused("/step_seconds/1", "fast", "step_seconds");
  expect_refused("/step_seconds", Json::array({1.0}), "step_seconds");
  expect_refused("/loss", Json::array(), "loss");
  expect_refused("/memory_bytes/peak", 0.5, "memory_bytes.peak");
  expect_refused("/checks/loss finite", "no", "checks.loss finite");
  expect_refused("/log_files/0", 1, "log_files");
  expect_refused("/gpus/0", "none", "gpus[0]");
  expect_refused("/gpus/0/rank", -1, "gpus[0].rank");
  expect_refused("/gpus/0/clock_reasons/thermal", "hot", "gpus[0].clock_reasons.thermal");
  expect_refused("/gpus/0/moments/power_watts", Json::array({1}), "gpus[0].moments.power_watts");
  expect_refused("/gpus/0/moments/throttled/1", 1, "gpus[0].moments.throttled");
  expect_refused("/ranks/0/host", 1, "ranks[0].host");
  expect_refused("/links/pairs/0/second", "node3", "links.pairs[0].second");
  expect_error(ExitCode::bad_data, {"result.json", "object"}, [] { reread(Json::array()); });
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
