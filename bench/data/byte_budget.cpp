#include "bench/data/byte_budget.h"

namespace plumb {

ByteBudget::Share::Share(ByteBudget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {
  std::unique_lock lock(budget_.mutex_);
  budget_.freed_.wait(lock, [&] { return budget_.left_ >= bytes_; });
  budget_.left_ -= bytes_;
}

ByteBudget::Share::~Share() {
  const std::scoped_lock lock(budget_.mutex_);
  budget_.left_ += bytes_;
  budget_.freed_.notify_all();
}

}  // namespace plumb
