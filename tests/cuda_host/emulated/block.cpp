#include "tests/cuda_host/emulated/block.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace plumb::gpu::emulated {

Place place;

std::uint32_t order_seed() {
  const char* seed = std::getenv("EMULATED_GPU_SEED");
  return seed ? static_cast<std::uint32_t>(std::strtoul(seed, nullptr, 10)) : 1;
}

Block& block() {
  static Block running;  // kernel threads have no other way to find their block
  return running;
}

namespace {
std::atomic<std::uint64_t> nanoseconds_skipped = 0;
}
void skip_time(std::uint64_t nanoseconds) {
  nanoseconds_skipped += nanoseconds;
}

std::uint64_t clock_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) +
         nanoseconds_skipped;
}

void Block::run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body) {
  place.grid_size = grid;
  place.block_size = block;
  body_ = &body;
  threads_ = block.x * block.y * block.z;
  order_.resize(threads_);
  for (unsigned i = 0; i < threads_; ++i)
    order_[i] = {i, {i % block.x, i / block.x % block.y, i / block.x / block.y}};
  std::shuffle(order_.begin(), order_.end(), random_);
  if (shared_bytes != shared_bytes_ || !shared_) {
    shared_ = std::make_unique<std::byte[]>(shared_bytes);  // exact size, so ASan catches accesses beyond it
    shared_bytes_ = shared_bytes;
  }
  if (corners_only_) return run_corners(grid);
  // Visits every block once, with a stride coprime to their number.
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  std::uint64_t step = random_() % blocks + 1;
  while (std::gcd(step, blocks) != 1) ++step;
  std::uint64_t at = random_() % blocks;
  for (std::uint64_t i = 0; i < blocks; ++i, at = (at + step) % blocks) {
    place.block = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                   static_cast<unsigned>(at / grid.x / grid.y)};
    run_block();
  }
}

void Block::run_corners(dim3 grid) {
  place.block = {0, 0, 0};
  run_block();
  if (std::max({grid.x, grid.y, grid.z}) == 1) return;
  place.block = {grid.x - 1, grid.y - 1, grid.z - 1};
  run_block();
}

void Block::run_block() {
  if (shared_bytes_ > 0) std::memset(shared_.get(), 0xFF, shared_bytes_);  // not written yet
  warps_.resize((threads_ + kWarpLanes - 1) / kWarpLanes);
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min<unsigned>(kWarpLanes, threads_ - static_cast<unsigned>(w) * kWarpLanes);
    warps_[w].there = lanes == kWarpLanes ? ~0U : (1U << lanes) - 1;
    warps_[w].waiting = 0;
  }
  begun_ = ended_ = brought_true_ = 0;
  begins_first_ = random_() % 2 == 0;
  host_.switch_to(next_worker().fiber);
  if (ended_ == threads_) return;
  const std::string why = failure_.empty() ? who_waits() : std::exchange(failure_, {});
  forget_workers();
  throw Error(ExitCode::internal, "a kernel on the emulated GPU failed: " + why);
}

void Block::work() {
  Fiber::entered();
  Block& self = block();
  for (;;) {
    while (self.begun_ < self.threads_ && (self.begins_first_ || self.ready_.empty())) {
      self.begin_thread();
      try {
        (*self.body_)();
      } catch (const std::exception& error) {
        self.give_up(error.what());
      }
      self.end_thread();
    }
    Worker& worker = *self.current_;
    self.free_.push_back(&worker);
    if (self.ready_.empty()) {
      worker.fiber.switch_to(self.host_);  // all have ended, or the rest wait forever
    } else {
      Worker* next = self.ready_.back();
      self.ready_.pop_back();
      worker.fiber.switch_to(next->fiber);
    }
    self.current_ = &worker;
  }
}

void Block::begin_thread() {
  const Thread& thread = order_[begun_++];
  current_->thread = thread.number;
  current_->index = thread.index;
  place.thread = current_->index;
}

void Block::end_thread() {
  ++ended_;
  const unsigned thread = current_->thread;
  Warp& warp = warps_[thread / kWarpLanes];
  warp.there &= ~(1U << thread % kWarpLanes);
  for (unsigned lane = 0; lane < kWarpLanes && warp.waiting; ++lane)  // threads that waited for this one
    if (warp.waiting >> lane & 1U && has_met(warp, lane)) complete(warp, warp.mask[lane] & warp.there);
}

// A worker that starts threads; the caller switches to it.
Worker& Block::next_worker() {
  if (free_.empty()) {
    workers_.push_back(std::make_unique<Worker>(workers_.size()));
    workers_.back()->fiber.start_at(&Block::work);
    free_.push_back(workers_.back().get());
  }
  current_ = free_.back();
  free_.pop_back();
  return *current_;
}

void Block::wait(std::source_location where) {
  Worker& self = *current_;
  self.waits_at = where;
  if (begun_ < threads_ && (begins_first_ || ready_.empty())) {
    self.fiber.switch_to(next_worker().fiber);
  } else if (!ready_.empty()) {
    Worker* next = ready_.back();
    ready_.pop_back();
    self.fiber.switch_to(next->fiber);
  } else {
    self.fiber.switch_to(host_);
  }
  current_ = &self;
  place.thread = self.index;
}

unsigned Block::synchronize(bool predicate, std::source_location where) {
  brought_true_ += predicate ? 1 : 0;
  if (at_barrier_.size() + 1 < threads_) {
    at_barrier_.push_back(current_);
    wait(where);
  } else {
    counted_true_ = std::exchange(brought_true_, 0);
    ready_.insert(ready_.end(), at_barrier_.begin(), at_barrier_.end());
    at_barrier_.clear();
  }
  return counted_true_;  // overwritten only at the next barrier, after all threads have read it
}

bool Block::has_met(const Warp& warp, unsigned lane) const {
  const std::uint32_t needed = warp.mask[lane] & warp.there;
  if ((warp.waiting & needed) != needed) return false;
  for (unsigned other = 0; other < kWarpLanes; ++other) {
    if (needed >> other & 1U &&
        (warp.mask[other] != warp.mask[lane] || warp.combine[other] != warp.combine[lane]))
      return false;
  }
  return true;
}

void Block::complete(Warp& warp, std::uint32_t lanes) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if ((lanes >> lane & 1U) == 0) continue;
    warp.combine[lane](warp, lanes);
    break;
  }
  warp.waiting &= ~lanes;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    if (lanes >> lane & 1U && warp.waiter[lane] != current_) ready_.push_back(warp.waiter[lane]);
}

std::uint64_t Block::exchange(std::uint32_t mask, std::uint64_t value, std::uint32_t source,
                              Warp::Combine combine, std::source_location where) {
  const unsigned own = lane();
  Warp& warp = warps_[current_->thread / kWarpLanes];
  current_->waits_at = where;
  if ((mask >> own & 1U) == 0) give_up("a lane is not in the mask that it gives " + who_waits());
  warp.brought[own] = value;
  warp.source[own] = source;
  warp.mask[own] = mask;
  warp.combine[own] = combine;
  warp.waiter[own] = current_;
  warp.waiting |= 1U << own;
  if (has_met(warp, own))
    complete(warp, mask & warp.there);
  else
    wait(where);
  return warp.taken[own];
}

void Block::give_up(std::string why) {
  failure_ = std::move(why);
  current_->fiber.switch_to(host_);
  std::abort();  // never resumed
}

std::string Block::who_waits() const {
  const auto line_of = [](const std::source_location& where) {
    const std::string file = where.file_name();
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
  };
  std::string text;
  if (!at_barrier_.empty())
    text = std::to_string(at_barrier_.size()) + " of " + std::to_string(threads_) + " threads wait at " +
           line_of(at_barrier_.front()->waits_at) + " for a barrier that the others never reach";
  for (const Warp& warp : warps_) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      if ((warp.waiting >> lane & 1U) == 0) continue;
      return text + (text.empty() ? "" : "; ") + "lane " + std::to_string(lane) + " waits at " +
             line_of(warp.waiter[lane]->waits_at) + " for lanes of its mask that never come";
    }
  }
  if (text.empty() && current_) text = "at " + line_of(current_->waits_at);
  return text;
}

void Block::forget_workers() {
  free_.clear();
  ready_.clear();
  at_barrier_.clear();
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->fiber.start_at(&Block::work);
    free_.push_back(worker.get());
  }
}

}  // namespace plumb::gpu::emulated
