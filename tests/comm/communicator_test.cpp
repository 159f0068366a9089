#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "base/error.h"

namespace plumb {
namespace {

using Kind = Collective::Kind;

constexpr DType kAllDtypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

bool is_carried(Kind kind, DType dtype) {
  try {
    require_sound({.kind = kind, .dtype = dtype}, 4);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
    EXPECT_NE(std::string(error.what()).find(name_of(dtype)), std::string::npos) << error.what();
    return false;
  }
  return true;
}

TEST(CollectiveDtypes, AreGatheredAllSummedInFloatingPointAndHaveMaximaInF32) {
  for (const DType dtype : kAllDtypes) {
    const bool is_floating = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
    EXPECT_TRUE(is_carried(Kind::allgather, dtype));
    EXPECT_EQ(is_carried(Kind::allreduce_sum, dtype), is_floating);
    EXPECT_EQ(is_carried(Kind::reduce_scatter_sum, dtype), is_floating);
    EXPECT_EQ(is_carried(Kind::allreduce_max, dtype), dtype == DType::f32);
  }
}

TEST(CollectiveParts, AreEqualOnAllRanks) {
  for (Kind kind : {Kind::allgather, Kind::reduce_scatter_sum}) {
    EXPECT_NO_THROW(require_sound({.kind = kind, .elements = 12}, 4));
    EXPECT_NO_THROW(require_sound({.kind = kind, .elements = 0}, 4));
    EXPECT_NO_THROW(require_sound({.kind = kind, .elements = 13}, 1));
    EXPECT_THROW(require_sound({.kind = kind, .elements = 13}, 4), std::logic_error);
  }
  for (Kind kind : {Kind::allreduce_sum, Kind::allreduce_max})
    EXPECT_NO_THROW(require_sound({.kind = kind, .elements = 13}, 4));
}

}  // namespace
}  // namespace plumb
