// Tests that every rank of a job runs at the same time. Collectives inside must be reached by all ranks
// whatever fails: EXPECT before them, ASSERT only on what all ranks see alike.
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
