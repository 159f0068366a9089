// comm/nccl_communicator.cpp on emulated GPUs, one per rank (EMULATED_GPUS): how it uses NCCL, and failures.
// What its collectives compute is checked by the runs of allreduce_test.cpp and face_ranks_test.cpp.
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "kernels/cuda/runtime/runtime.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using cuda::check;

template <typename T>
cuda::DeviceMemory on_gpu(const std::vector<T>& values) {
  cuda::DeviceMemory memory = cuda::allocate_device(values.size() * sizeof(T));
  check(cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <typename T>
std::vector<T> on_host(const cuda::DeviceMemory& memory, std::size_t count) {
  std::vector<T> values(count);
  check(cudaMemcpy(values.data(), memory.get(), count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ExitCode::ok, "no error");
}

class Nccl : public MpiTest {
 protected:
  void SetUp() override {
    check(cudaSetDevice(job().local_rank()));
    stream = cuda::make_stream(cuda::Priority::high);
  }
  std::unique_ptr<Communicator> make(bool shares_gpu = false) const {
    return make_nccl_communicator(job(), stream.get(), shares_gpu);
  }
  void synchronize() const { check(cudaStreamSynchronize(stream.get())); }
  static int sum_of_ranks() { return job().size() * (job().size() + 1) / 2; }

  cuda::Stream stream;
};

// Each runs alone: it leaves the rank's GPU or its communicators broken, or sets NCCL's variables.
class NcclFault : public Nccl {};

TEST_F(Nccl, IsInThisBuildAndSpansTheJob) {
  EXPECT_EQ(why_no_nccl(), "");
  const auto communicator = make();
  EXPECT_EQ(communicator->name(), "nccl");
  EXPECT_EQ(communicator->size(), job().size());
  EXPECT_TRUE(communicator->enqueues());
}

TEST_F(Nccl, ManyInFlightStayBetweenWhatTheStreamWasGivenBeforeAndAfter) {
  const auto communicator = make();
  constexpr std::size_t kCount = 501;
  std::vector<cuda::DeviceMemory> buffers;
  std::vector<cuda::DeviceMemory> copies;
  for (int i = 0; i < 40; ++i) {
    const cuda::DeviceMemory values =
        on_gpu(std::vector<float>(kCount, static_cast<float>(i + job().rank())));
    buffers.push_back(cuda::allocate_device(kCount * sizeof(float)));
    copies.push_back(cuda::allocate_device(kCount * sizeof(float)));
    const auto copy = [&](std::byte* to, const std::byte* from) {
      check(cudaMemcpyAsync(to, from, kCount * sizeof(float), cudaMemcpyDeviceToDevice, stream.get()));
    };
    copy(buffers.back().get(), values.get());
    const auto ticket = communicator->start({.elements = kCount, .dtype = DType::f32}, buffers.back().get());
    communicator->wait(ticket);  // the host doesn't wait
    EXPECT_TRUE(communicator->done(ticket));
    copy(copies.back().get(), buffers.back().get());
    if (i % 7 == 0) communicator->progress();
  }
  synchronize();
  for (int i = 0; i < 40; ++i) {
    const int sum = job().size() * i + sum_of_ranks() - job().size();
    EXPECT_EQ(on_host<float>(copies[static_cast<std::size_t>(i)], kCount),
              std::vector<float>(kCount, static_cast<float>(sum)));
  }
}

// Sums would do for the rows of a head.
TEST_F(Nccl, TakesMaxima) {
  const auto communicator = make();
  const auto value_of = [](std::size_t i, int rank) { return static_cast<float>(i * 7 % 16) + 3.0F * rank; };
  std::vector<float> values(1000), wanted(1000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = value_of(i, job().rank()), wanted[i] = value_of(i, job().size() - 1);
  const cuda::DeviceMemory memory = on_gpu(values);
  communicator->start({.kind = Collective::Kind::allreduce_max, .elements = 1000}, memory.get());
  synchronize();
  EXPECT_EQ(on_host<float>(memory, 1000), wanted);
}

TEST_F(Nccl, OneMayFollowAnother) {
  const cuda::DeviceMemory memory = on_gpu(std::vector<float>(9, 1.0f));
  for (int i = 0; i < 3; ++i) {
    const auto communicator = make();
    communicator->start({.elements = 9, .dtype = DType::f32}, memory.get());
    synchronize();
  }
  EXPECT_EQ(on_host<float>(memory, 9).front(),
            static_cast<float>(job().size() * job().size() * job().size()));
}

TEST_F(Nccl, TwoRanksOnOneGpuAreRefusedOnEveryRank) {
  if (job().size() == 1) GTEST_SKIP() << "one rank shares with nobody";
  check(cudaSetDevice(0));
  const Error error = error_of([&] { make(); });
  EXPECT_EQ(error.code(), ExitCode::peer_lost);
  EXPECT_NE(std::string(error.what()).find("Duplicate GPU"), std::string::npos) << error.what();
}

// Alone, as NCCL reads its variables once. Also with EMULATED_NCCL_VERSION=23003.
TEST_F(NcclFault, RanksMayShareAGpuThatTheyAreLetShare) {
  check(cudaSetDevice(0));
  const auto communicator = make(true);
  const cuda::DeviceMemory memory = on_gpu(std::vector<float>(9, static_cast<float>(job().rank() + 1)));
  communicator->start({.elements = 9, .dtype = DType::f32}, memory.get());
  synchronize();
  EXPECT_EQ(on_host<float>(memory, 9), std::vector<float>(9, static_cast<float>(sum_of_ranks())));
}

// With NCCL_HOSTID=one.
TEST_F(NcclFault, AHostIdThatTheUserSetStays) {
  check(cudaSetDevice(0));
  const Error error = error_of([&] { make(true); });
  EXPECT_EQ(error.code(), ExitCode::peer_lost);
  const std::string sentence = error.what();
  EXPECT_NE(sentence.find("Duplicate GPU"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("unset the NCCL_ variables that you set, such as NCCL_HOSTID"), std::string::npos)
      << sentence;
}

// With EMULATED_NCCL_FAIL=1:3.
TEST_F(NcclFault, AFailureMeanwhileIsTheRanksThatSawIt) {
  const auto communicator = make();
  const cuda::DeviceMemory memory = on_gpu(std::vector<float>(9, 1.0f));
  for (int iteration = 0; iteration < 6; ++iteration) {
    const bool fails = job().rank() == 1 && iteration >= 3;
    const Error error = error_of([&] { communicator->progress(); });
    EXPECT_EQ(error.code(), fails ? ExitCode::peer_lost : ExitCode::ok) << iteration;
    if (!fails) continue;
    const std::string sentence = error.what();
    EXPECT_EQ(sentence.find("NCCL failed: remote process exited"), 0u) << sentence;
    EXPECT_NE(sentence.find("nccl_communicator.cpp:"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("EMULATED_NCCL_FAIL"), std::string::npos) << sentence;  // NCCL's last error
    EXPECT_NE(sentence.find("NCCL_DEBUG=INFO"), std::string::npos) << sentence;
  }
}

// With EMULATED_NCCL_FAIL_INIT=1.
TEST_F(NcclFault, AFailedInitIsThrownOnEveryRankAndToldByTheOneThatSawIt) {
  bool told_elsewhere = false;
  try {
    make();
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& error) {
    told_elsewhere = dynamic_cast<const ErrorToldElsewhere*>(&error) != nullptr;
    EXPECT_EQ(error.code(), ExitCode::peer_lost);
    EXPECT_EQ(std::string(error.what()).find("NCCL failed: unhandled system error"), 0u) << error.what();
  }
  EXPECT_EQ(told_elsewhere, job().rank() != 1);
}

TEST_F(NcclFault, RanksThatSumInAnotherOrderAreFound) {
  const auto communicator = make();
  const cuda::DeviceMemory first = on_gpu(std::vector<float>(10, 1.0f));
  const cuda::DeviceMemory second = on_gpu(std::vector<std::uint16_t>(10, 0));
  const auto sum_first = [&] { communicator->start({.elements = 10, .dtype = DType::f32}, first.get()); };
  const auto sum_second = [&] { communicator->start({.elements = 10, .dtype = DType::bf16}, second.get()); };
  if (job().rank() == 1) sum_second();
  sum_first();
  if (job().rank() != 1) sum_second();
  const Error error = error_of([&] { synchronize(); });
  EXPECT_NE(std::string(error.what()).find("rank 1 runs"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace plumb
