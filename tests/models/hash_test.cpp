#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>

namespace plumb {
namespace {

// Expected values: the test vectors of draft-eastlake-fnv.
TEST(Hash, IsFnv1a) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

TEST(Hash, GoesOnWhereAnotherEnded) {
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

TEST(Hash, TakesTheBytesOfFloats) {
  const std::array<float, 2> values{1.0F, -2.0F};
  EXPECT_EQ(fnv1a(values), fnv1a(std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8)));
}

}  // namespace
}  // namespace plumb
