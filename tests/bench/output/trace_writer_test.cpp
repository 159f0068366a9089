#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/output/profile.h"
#include "tests/bench/output/profiled_program.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

Json trace_of(const Program& program, const std::vector<InstructionTime>& times) {
  return Json::parse(trace_text(program, times, "some \"gpu\""));
}

std::map<int, std::string> threads(const Json& trace) {
  std::map<int, std::string> names;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
  return names;
}

std::vector<Json> complete_events(const Json& trace) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") events.push_back(event);
  return events;
}

TEST(TraceWriter, HasEveryStepOfEveryIterationOnItsLane) {
  const Program program = profiled_program();
  const Json trace = trace_of(program, three_iterations());
  std::map<int, std::string> names = threads(trace);
  std::multiset<std::string> found;
  for (const Json& event : complete_events(trace)) {
    const std::string name = event.at("name"), lane = names.at(event.at("tid"));
    found.insert(name + " on " + lane);
    EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    EXPECT_GE(event.at("ts").get<double>(), 0) << event;
    EXPECT_EQ(event.at("pid"), 0);
  }
  for (const Instruction& instruction : program.instructions)
    EXPECT_EQ(found.count(instruction.name + " on " + std::string(name_of(instruction.lane))), 3U)
        << instruction.name;
  for (const char* iteration : {"iteration 0", "iteration 1", "iteration 2"})
    EXPECT_EQ(found.count(std::string(iteration) + " on iterations"), 1U);
  EXPECT_EQ(found.size(), 3 * program.instructions.size() + 3);
}

TEST(TraceWriter, TellsTimesInMicrosecondsFromTheFirstStepAndWhatAStepDoes) {
  const Json trace = trace_of(profiled_program(), three_iterations());
  for (const Json& event : complete_events(trace)) {
    if (event.at("name") != "layer1.0.conv1.forward" || event.at("args").at("iteration") != 1) continue;
    EXPECT_NEAR(event.at("ts").get<double>(), 17e3 + 1e3, 1e-3);
    EXPECT_NEAR(event.at("dur").get<double>(), 8e3, 1e-3);
    EXPECT_EQ(event.at("cat"), "forward");
    EXPECT_EQ(event.at("args").at("kind"), "conv_forward");
    EXPECT_EQ(event.at("args").at("macs"), 1e9);
    EXPECT_EQ(event.at("args").at("bytes"), 1e7);
    return;
  }
  ADD_FAILURE() << "the second iteration's convolution is missing in\n" << trace.dump(1);
}

TEST(TraceWriter, NamesProcessAndEveryLaneOnce) {
  const Json trace = trace_of(profiled_program(), three_iterations());
  std::set<std::string> names;
  for (const auto& [thread, name] : threads(trace)) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"iterations", "input", "compute", "communication"}));
  EXPECT_EQ(trace.at("traceEvents").at(0).at("args").at("name"), "rank 0: some \"gpu\"");
}

// Chrome nests overlapping events of one thread as if one called the other. Collectives that are under way
// together have a thread each.
TEST(TraceWriter, LetsNothingOverlapOnAThreadAndKeepsTheTimesOfCollectives) {
  std::vector<InstructionTime> times = {{kReduce, 1, 3}, {kConv, 1, 2}, {kNorm, 1.5, 1.75}, {kUpdate, 3, 4}};
  Program program = profiled_program();
  program.buffers[0].bytes = 4096;
  for (const InstructionId id : {kNorm, kUpdate}) {
    program.instructions[id].lane = Lane::communication;
    program.instructions[id].operation = Collective{};
  }
  const Json trace = trace_of(program, times);
  std::map<std::string, std::pair<int, double>> collectives;  // thread and begin
  for (const Json& event : complete_events(trace))
    if (event.contains("args") && event.at("args").value("kind", "") == "reduce") {
      EXPECT_EQ(event.at("args").at("bytes"), 4096);
      collectives[event.at("name")] = {event.at("tid"), event.at("ts")};
    }
  EXPECT_NEAR(collectives.at("layer1.0.bn1.backward").second, 0.5e6, 1e-3);
  EXPECT_NE(collectives.at("layer1.0.bn1.backward").first, collectives.at("reduce.0").first);
  EXPECT_EQ(collectives.at("update").first, collectives.at("reduce.0").first);
  EXPECT_EQ(threads(trace).at(collectives.at("layer1.0.bn1.backward").first), "communication 2");
  std::map<int, double> ends;
  for (const Json& event : complete_events(trace)) {
    if (event.at("name").get<std::string>().starts_with("iteration")) continue;
    double& end = ends[event.at("tid")];
    EXPECT_GE(event.at("ts").get<double>(), end) << event;
    EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(ends.size(), 3U);
}

TEST(TraceWriter, OfNothingIsValidToo) {
  EXPECT_TRUE(complete_events(trace_of(profiled_program(), {})).empty());
}

}  // namespace
}  // namespace plumb
