// links.json: what is written is read, and what can't be is named.
#include "results/record/links.h"

#include <gtest/gtest.h>

#include "results/record/schema.h"
#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

Links two_hosts() {
  return {.comm = "mpi",
          .hosts = {{"node1", 2}, {"node2", 2}},
          .start_seconds = 1e-6,
          .within_host = Link{2e-6, 4e9},
          .between_hosts = Link{6e-5, 1.17e8},
          .pairs = {{"node1", "node2", {5e-5, 1.18e8}}},
          .allreduces = {{2, 2, 1 << 20, {0.012, 0.013, 0.02}}}};
}

void expect_refused(const std::vector<std::string>& words, const std::function<void(Json&)>& damage) {
  Json json = to_json(two_hosts());
  damage(json);
  expect_error(ExitCode::bad_data, words, [&] { links_from_json(json, "links.json"); });
}

TEST(Links, SurviveTheRoundTrip) {
  const ScratchFolder scratch;
  const Json json = to_json(two_hosts());
  const Links back = read_links(scratch.write("links.json", json.dump(1) + "\n"));
  EXPECT_EQ(to_json(back).dump(), json.dump());
  EXPECT_EQ(back.hosts[1].name, "node2");
  EXPECT_EQ(back.allreduces[0].seconds.max, 0.02);
}

TEST(Links, PartsThatWereNotMeasuredMayBeMissing) {
  Json json = to_json(two_hosts());
  for (const char* key : {"start_seconds", "within_host", "pairs", "allreduce"}) json.erase(key);
  const Links links = links_from_json(json, "links.json");
  EXPECT_FALSE(links.within_host);
  EXPECT_TRUE(links.between_hosts && links.pairs.empty() && links.allreduces.empty());
}

TEST(Links, AreReadFromAResultWhoseRunProbedThem) {
  const ScratchFolder scratch;
  const Json result{{"schema", kResultSchema}, {"links", to_json(two_hosts())}};
  EXPECT_EQ(to_json(read_links(scratch.write("result.json", result.dump()))), to_json(two_hosts()));
  const Json alone{{"schema", kResultSchema}};
  expect_error(ExitCode::bad_data, {"alone.json", "no links", "bench_allreduce --output"},
               [&] { read_links(scratch.write("alone.json", alone.dump())); });
}

TEST(Links, NonsenseIsRefusedByItsKey) {
  expect_refused({"'schema'", "plumbline.links/1"},
                 [](Json& json) { json["schema"] = "plumbline.result/1"; });
  expect_refused({"'hosts'", "empty"}, [](Json& json) { json["hosts"] = Json::array(); });
  expect_refused({"'hosts[1].name'", "node1"}, [](Json& json) { json["hosts"][1]["name"] = "node1"; });
  expect_refused({"'hosts[0].devices'", "0"}, [](Json& json) { json["hosts"][0]["devices"] = 0; });
  expect_refused({"'pairs[0].second'", "elsewhere"},
                 [](Json& json) { json["pairs"][0]["second"] = "elsewhere"; });
  expect_refused({"'between_hosts.bytes_per_second'", "-1"},
                 [](Json& json) { json["between_hosts"]["bytes_per_second"] = -1; });
  expect_refused({"'within_host.latency_seconds'", "finite"},
                 [](Json& json) { json["within_host"]["latency_seconds"] = nullptr; });
  expect_refused({"'allreduce[0].seconds'"}, [](Json& json) { json["allreduce"][0]["seconds"]["min"] = 1; });
  expect_refused({"'allreduce[0].hosts'", "sends nothing"}, [](Json& json) {
    json["allreduce"][0]["hosts"] = json["allreduce"][0]["devices_per_host"] = 1;
  });
  expect_refused({"neither a link nor an allreduce"}, [](Json& json) {
    for (const char* key : {"within_host", "between_hosts", "pairs", "allreduce"}) json.erase(key);
  });
}

TEST(Links, AFileThatIsNoneIsNamed) {
  const ScratchFolder scratch;
  const auto refused = [&](const std::filesystem::path& file, const std::vector<std::string>& words) {
    expect_error(ExitCode::bad_data, words, [&] { read_links(file); });
  };
  refused(scratch / "none.json", {"none.json", "name a links.json"});
  refused(scratch.write("empty.json", ""), {"empty.json", "bench_allreduce --output"});
  refused(scratch.write("list.json", "[1]"), {"list.json", "no JSON object"});
}

}  // namespace
}  // namespace plumb
