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

// Expected: the definition in Python, `hash = (hash ^ word) * prime % 2**64`.
TEST(Hash, TakesFloatsAsWords) {
  EXPECT_EQ(fnv1a(std::array{1.0F, -2.0F}), 0x8332700d86b6fedU);
  EXPECT_NE(fnv1a(std::array{-2.0F, 1.0F}), fnv1a(std::array{1.0F, -2.0F}));
  EXPECT_NE(fnv1a(std::array{0.0F}), fnv1a(std::array{-0.0F}));
}

}  // namespace
}  // namespace plumb
