// The runner with a device and a communicator that log their calls.
#include "bench/run/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "base/error.h"

namespace plumb {
namespace {

using Kind = Collective::Kind;
using Log = std::vector<std::string>;

class LoggingDevice : public Device, StepCapture {
 public:
  LoggingDevice(const Program& program, Log& log, bool behind_the_host)
      : program_(program), log_(log), behind_the_host_(behind_the_host), memory_(program.buffers.size()) {}
  const DeviceLimits& limits() const override { return limits_; }
  std::string description() const override { return "a device that writes down what it is asked for"; }
  void prepare(const Graph&, const UpdateRule&, Program&) override {}
  void bind(Program&, const MemoryPlan&) override {}
  void write_parameter(ParameterId, std::span<const float>) override {}
  void write_rows(ParameterId, std::int64_t, std::span<const float>) override {}
  void read_parameter(ParameterId, std::span<float>) const override {}
  void read_gradient(ParameterId, std::span<float>) const override {}
  void write_statistic(StatisticId, std::span<const float>) override {}
  void read_statistic(StatisticId, std::span<float>) const override {}
  void write_batch(std::int64_t, std::span<const float>, std::span<const std::int64_t>) override {}
  void stage_batch(std::span<const std::uint8_t>, std::span<const std::int32_t>) override {}
  void write_state(const StepState&) override {}
  IterationMetrics metrics(std::uint64_t) const override { return {}; }
  std::byte* data(BufferId buffer) override { return &memory_[buffer]; }
  void* queue(Lane) override { return behind_the_host_ ? this : nullptr; }
  void signal(InstructionId instruction, Lane lane) override {
    if (behind_the_host_)
      log_.push_back(std::string(name_of(lane)) + " has " + program_.instructions[instruction].name);
  }
  void wait(InstructionId instruction, Lane lane) override {
    if (behind_the_host_)
      log_.push_back(std::string(name_of(lane)) + " waits for " + program_.instructions[instruction].name);
  }
  void stamp_wait(Wait what, bool after) override {
    if (what == Wait::data) log_.push_back(after ? "has its batch" : "wants a batch");
  }
  StepCapture* step_capture() override { return this; }
  void capture(const std::function<void()>& enqueue) override {
    const Log ran = log_;
    enqueue();
    log_ = ran;
  }
  void replay() override { log_.push_back("replay"); }
  void drop_capture() noexcept override {}
  void start_clock() override {}
  void end_iteration() override {}
  std::optional<double> next_end() override { return std::nullopt; }
  void stamp(InstructionId, Lane, bool) override {}
  std::vector<InstructionTime> step_times() override { return {}; }
  std::size_t peak_bytes() const override { return 0; }

 private:
  const Program& program_;
  Log& log_;
  bool behind_the_host_;
  std::vector<std::byte> memory_;
  DeviceLimits limits_;
};

// Completes a collective only in wait().
class LoggingCommunicator : public Communicator {
 public:
  LoggingCommunicator(const Program& program, Log& log, bool enqueues)
      : program_(program), log_(log), enqueues_(enqueues) {}
  std::string name() const override { return "log"; }
  int size() const override { return 4; }
  bool enqueues() const override { return enqueues_; }
  Ticket start(const Collective& collective, std::byte*) override {
    started_.push_back(program_.buffers[collective.buffer].name);
    log_.push_back("start " + std::string(name_of(collective.kind)) + " of " + started_.back());
    return started_.size() - 1;
  }
  void progress() override {}
  bool done(Ticket) const override { return false; }
  void wait(Ticket ticket) override { log_.push_back("end " + started_.at(ticket)); }

 private:
  const Program& program_;
  Log& log_;
  bool enqueues_;
  std::vector<std::string> started_;
};

class LoggingBatches : public BatchSource {
 public:
  explicit LoggingBatches(Log& log) : log_(log) {}
  PixelBatch next() override {
    log_.push_back("batch");
    return {};
  }
  std::size_t host_bytes() const override { return 0; }
  std::string description() const override { return "nothing"; }

 private:
  Log& log_;
};

// Instructions over buffers that are created on first use.
struct LoggedProgram {
  Program program;
  Log log;
  std::map<std::string, BufferId> ids;

  BufferId buffer(const std::string& name) {
    const auto [at, added] = ids.try_emplace(name, program.buffers.size());
    if (added) program.buffers.push_back({.name = name, .bytes = 16});
    return at->second;
  }
  void compute(const std::string& name, const std::vector<std::string>& reads,
               const std::vector<std::string>& writes) {
    Recorded uses;
    for (const std::string& read : reads) uses.uses.push_back({buffer(read), Access::read});
    for (const std::string& written : writes) uses.uses.push_back({buffer(written), Access::write});
    program.instructions.push_back(
        {.name = name, .operation = std::move(uses), .run = [this, name] { log.push_back(name); }});
  }
  void collective(Kind kind, const std::string& name) {
    const BufferId id = buffer(name);
    program.instructions.push_back(
        {.name = name + "." + std::string(name_of(kind)),
         .operation = Collective{.kind = kind, .buffer = id, .elements = 4, .parts = {id}},
         .phase = Phase::reduce,
         .lane = Lane::communication});
  }
  // Returns Runner::communicating_seconds.
  double run(bool enqueues, int iterations = 1, bool capture = false) {
    LoggingDevice device(program, log, enqueues);
    LoggingCommunicator communicator(program, log, enqueues);
    LoggingBatches batches(log);
    Runner runner(program, device, &communicator, batches);
    if (capture) runner.capture();
    for (int i = 0; i < iterations; ++i) runner.run_iteration();
    return runner.communicating_seconds();
  }
  std::size_t place_of(const std::string& entry) const {
    const auto at = std::find(log.begin(), log.end(), entry);
    EXPECT_NE(at, log.end()) << entry;
    return static_cast<std::size_t>(at - log.begin());
  }
};

// A sharded head, followed by two buckets of the backbone.
void add_head_and_buckets(LoggedProgram& logged) {
  logged.compute("normalize", {}, {"features", "labels"});
  logged.collective(Kind::allgather, "features");
  logged.collective(Kind::allgather, "labels");
  logged.compute("class_norms", {}, {"norms"});
  logged.compute("statistics", {"features", "labels", "norms"}, {"max", "sums"});
  logged.collective(Kind::allreduce_max, "max");
  logged.compute("rescale", {"max"}, {"sums"});
  logged.collective(Kind::allreduce_sum, "sums");
  logged.compute("gradient", {"sums"}, {"d_features"});
  logged.collective(Kind::reduce_scatter_sum, "d_features");
  logged.compute("weight_gradient", {"features"}, {"d_weight"});
  logged.compute("features_backward", {"d_features"}, {"bucket0"});
  logged.collective(Kind::allreduce_sum, "bucket0");
  logged.compute("backward", {}, {"bucket1"});
  logged.collective(Kind::allreduce_sum, "bucket1");
  logged.compute("backward_images", {}, {});
  logged.compute("update", {"bucket0", "bucket1", "d_weight"}, {});
}

TEST(Runner, WaitsForAHeadsCollectivesWhereTheyAreNeededAndForBucketsBeforeTheUpdate) {
  LoggedProgram logged;
  add_head_and_buckets(logged);
  logged.run(false);
  EXPECT_EQ(logged.log, (Log{"normalize",
                             "start allgather of features",
                             "start allgather of labels",
                             "class_norms",
                             "end features",
                             "end labels",
                             "statistics",
                             "start allreduce_max of max",
                             "end max",
                             "rescale",
                             "start allreduce_sum of sums",
                             "end sums",
                             "gradient",
                             "start reduce_scatter_sum of d_features",
                             "weight_gradient",
                             "end d_features",
                             "features_backward",
                             "start allreduce_sum of bucket0",
                             "backward",
                             "start allreduce_sum of bucket1",
                             "backward_images",
                             "end bucket0",
                             "end bucket1",
                             "update"}));
}

TEST(Runner, DoesTheSameInEveryIteration) {
  LoggedProgram once, thrice;
  add_head_and_buckets(once);
  add_head_and_buckets(thrice);
  once.run(false);
  thrice.run(false, 3);
  Log repeated;
  for (int i = 0; i < 3; ++i) repeated.insert(repeated.end(), once.log.begin(), once.log.end());
  EXPECT_EQ(thrice.log, repeated);
}

// Collectives complete in start order on every rank, whichever is needed first.
TEST(Runner, EndsWhatStartedEarlierFirst) {
  LoggedProgram logged;
  logged.compute("first", {}, {"bucket", "sums"});
  logged.collective(Kind::allreduce_sum, "bucket");
  logged.collective(Kind::allreduce_sum, "sums");
  logged.compute("needs_sums", {"sums"}, {});
  logged.compute("needs_bucket", {"bucket"}, {});
  logged.run(false);
  EXPECT_EQ(logged.log, (Log{"first", "start allreduce_sum of bucket", "start allreduce_sum of sums",
                             "end bucket", "end sums", "needs_sums", "needs_bucket"}));
}

TEST(Runner, EndsBeforeTheIterationWhatNobodyNeeds) {
  LoggedProgram logged;
  logged.compute("first", {}, {"sums"});
  logged.collective(Kind::allreduce_sum, "sums");
  logged.compute("last", {}, {});
  logged.run(false);
  EXPECT_EQ(logged.log, (Log{"first", "start allreduce_sum of sums", "last", "end sums"}));
}

// The lane's wait begins where it ends an iteration, not where the host has waited for the batch.
TEST(Runner, StampsTheComputeLanesWaitForItsBatch) {
  for (const bool capture : {false, true}) {
    LoggedProgram logged;
    logged.compute("load", {}, {"staging"});
    logged.program.instructions.back().lane = Lane::input;
    logged.compute("pack", {"staging"}, {"images"});
    logged.compute("train", {"staging", "images"}, {});
    logged.run(true, 1, capture);
    Log wanted{"wants a batch", "batch", "input has load", "compute waits for load", "has its batch"};
    if (capture)
      wanted.insert(wanted.end(), {"replay"});
    else
      wanted.insert(wanted.end(), {"pack", "train"});
    EXPECT_EQ(logged.log, wanted) << capture;
  }
}

TEST(Runner, LetsLanesWaitWhereTheCommunicatorEnqueues) {
  LoggedProgram logged;
  add_head_and_buckets(logged);
  logged.run(true);
  for (const std::string& entry : logged.log) EXPECT_FALSE(entry.starts_with("end ")) << entry;
  const auto in_order = [&](const Log& entries) {
    for (std::size_t i = 1; i < entries.size(); ++i)
      EXPECT_LT(logged.place_of(entries[i - 1]), logged.place_of(entries[i])) << entries[i];
  };
  in_order({"normalize", "compute has normalize", "communication waits for normalize",
            "start allgather of features", "start allgather of labels", "communication has labels.allgather",
            "compute waits for labels.allgather", "statistics"});
  in_order({"compute waits for max.allreduce_max", "rescale", "communication waits for rescale",
            "start allreduce_sum of sums", "compute waits for sums.allreduce_sum", "gradient"});
  in_order({"gradient", "start reduce_scatter_sum of d_features", "weight_gradient",
            "compute waits for d_features.reduce_scatter_sum", "features_backward"});
  in_order({"start allreduce_sum of bucket0", "backward", "start allreduce_sum of bucket1",
            "compute waits for bucket1.allreduce_sum", "update"});
}

TEST(Runner, TimesCollectivesThatTheHostCarries) {
  LoggedProgram carried, enqueued, none;
  add_head_and_buckets(carried);
  add_head_and_buckets(enqueued);
  none.compute("normalize", {}, {"features"});
  EXPECT_GT(carried.run(false), 0);
  EXPECT_EQ(enqueued.run(true), 0);
  EXPECT_EQ(none.run(false), 0);
}

TEST(Runner, LooksUpBetweenInstructionsWhereTheHostComputes) {
  const auto looks = [](bool behind_the_host) {
    LoggedProgram logged;
    for (const char* name : {"a", "b", "c"}) logged.compute(name, {}, {});
    LoggingDevice device(logged.program, logged.log, behind_the_host);
    LoggingBatches batches(logged.log);
    Runner runner(logged.program, device, nullptr, batches);
    int count = 0;
    const auto third_time = [&] {
      if (++count == 3) throw Error(ExitCode::internal, "enough");
    };
    if (behind_the_host)
      runner.run_iteration(third_time);
    else
      EXPECT_THROW(runner.run_iteration(third_time), Error);
    return std::pair{count, logged.log};
  };
  EXPECT_EQ(looks(false), (std::pair{3, Log{"a", "b"}}));
  EXPECT_EQ(looks(true), (std::pair{0, Log{"a", "b", "c"}}));
}

TEST(Runner, RefusesCollectivesWithoutACommunicator) {
  LoggedProgram logged;
  add_head_and_buckets(logged);
  LoggingDevice device(logged.program, logged.log, false);
  LoggingBatches batches(logged.log);
  EXPECT_THROW(Runner(logged.program, device, nullptr, batches), std::logic_error);
}

}  // namespace
}  // namespace plumb
