#include "kernels/cuda/runtime/lanes.h"

#include <stdexcept>

namespace plumb::cuda {
namespace {

double seconds_between(const Event& before, const Event& after) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, before.get(), after.get()));
  return 1e-3 * static_cast<double>(milliseconds);
}

bool is_over(const Event& event) {
  const cudaError_t status = cudaEventQuery(event.get());
  if (status == cudaErrorNotReady) return false;
  check(status);
  return true;
}

}  // namespace

Lanes::Lanes() : joined_(make_event()) {
  for (const Priority priority : {Priority::low, Priority::normal, Priority::high})  // by Lane
    streams_.push_back(make_stream(priority));
}

void Lanes::signal(InstructionId instruction, Lane lane) {
  if (signals_.size() <= instruction) signals_.resize(instruction + 1);
  if (!signals_[instruction]) signals_[instruction] = make_event();
  check(cudaEventRecord(signals_[instruction].get(), stream(lane)));
}

void Lanes::wait(InstructionId instruction, Lane lane) {
  if (signals_.size() <= instruction || !signals_[instruction])
    throw std::logic_error("nobody signalled this instruction");
  check(cudaStreamWaitEvent(stream(lane), signals_[instruction].get(), 0));
}

std::size_t Lanes::mark(Lane lane) {
  if (marks_.size() < kMarks) marks_.push_back(make_event());
  check(cudaEventRecord(marks_[next_mark_ % kMarks].get(), stream(lane)));
  return next_mark_++;
}

bool Lanes::reached(std::size_t mark) const {
  return is_over(marks_.at(mark % kMarks));
}

void Lanes::synchronize() const {
  for (const Stream& stream : streams_) check(cudaStreamSynchronize(stream.get()));
}

void Lanes::drain() const noexcept {
  for (const Stream& stream : streams_) cudaStreamSynchronize(stream.get());
}

void Lanes::join() {
  check(cudaEventRecord(joined_.get(), stream(Lane::communication)));
  check(cudaStreamWaitEvent(stream(Lane::compute), joined_.get(), 0));
}

ExecutableGraph Lanes::capture(const std::function<void()>& enqueue) {
  const CapturedGraph captured = capture_graph(stream(Lane::compute), [&] {
    enqueue();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream(Lane::communication), &status));
    if (status == cudaStreamCaptureStatusActive) join();
  });
  return instantiate(captured);
}

void Clock::start(const Lanes& lanes) {
  lanes.synchronize();
  if (!start_) start_ = make_event(cudaEventDefault);
  ended_ = told_ = 0;
  told_seconds_ = 0;
  stamps_.clear();
  check(cudaEventRecord(start_.get(), lanes.stream(Lane::compute)));
  check(cudaEventSynchronize(start_.get()));
}

void Clock::end_iteration(const Lanes& lanes) {
  if (ended_ - told_ >= kIterationsInFlight - 1) throw std::logic_error("too many iterations are under way");
  if (ends_.size() < kIterationsInFlight) ends_.push_back(make_event(cudaEventDefault));
  check(cudaEventRecord(ends_[ended_ % kIterationsInFlight].get(), lanes.stream(Lane::compute)));
  ++ended_;
}

// Adds up intervals: one float of milliseconds since the start would lose precision in a long run.
std::optional<double> Clock::next_end() {
  if (told_ == ended_) return std::nullopt;
  const Event& end = ends_[told_ % kIterationsInFlight];
  if (!is_over(end)) return std::nullopt;
  const Event& before = told_ == 0 ? start_ : ends_[(told_ - 1) % kIterationsInFlight];
  told_seconds_ += seconds_between(before, end);
  ++told_;
  return told_seconds_;
}

void Clock::wait_for_iteration_before_last(cudaStream_t stream) const {
  if (ended_ < 2) return;
  check(cudaStreamWaitEvent(stream, ends_[(ended_ - 2) % kIterationsInFlight].get(), 0));
}

void Clock::stamp(const Lanes& lanes, InstructionId instruction, Lane lane, bool after) {
  if (!after)
    stamps_.push_back({.instruction = instruction,
                       .begin = make_event(cudaEventDefault),
                       .end = make_event(cudaEventDefault)});
  // Lanes interleave: the instruction that ends is the most recent begin with this number.
  std::size_t at = stamps_.size();
  while (at > 0 && stamps_[at - 1].instruction != instruction) --at;
  if (at == 0) throw std::logic_error("an instruction ends that never began");
  check(cudaEventRecord(after ? stamps_[at - 1].end.get() : stamps_[at - 1].begin.get(), lanes.stream(lane)));
}

std::vector<InstructionTime> Clock::step_times() {
  std::vector<InstructionTime> times;
  if (stamps_.empty()) return times;
  const Event& first = stamps_.front().begin;
  const double base = seconds_between(start_, first);
  for (const Stamp& stamp : stamps_)
    times.push_back({.instruction = stamp.instruction,
                     .begin = base + seconds_between(first, stamp.begin),
                     .end = base + seconds_between(first, stamp.end)});
  stamps_.clear();
  return times;
}

}  // namespace plumb::cuda
