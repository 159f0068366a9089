// Tests that all ranks of a job run together. Every rank must reach the collectives inside, even after a
// failure: use EXPECT before them, and ASSERT only on values that are equal on all ranks.
#pragma once

#include <gtest/gtest.h>

#include "comm/job.h"

namespace plumb {

class MpiTest : public testing::Test {
 public:
  static void set_job(const Job* job) { job_ = job; }

 protected:
  static const Job& job() { return *job_; }

 private:
  static inline const Job* job_ = nullptr;
};

}  // namespace plumb
