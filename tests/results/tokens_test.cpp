#include "results/formats/tokens.h"

#include <gtest/gtest.h>

#include <cmath>

#include "results/formats/stamps.h"

namespace plumb {
namespace {

TEST(PythonFloat, ReadsWhatPythonReads) {
  EXPECT_EQ(python_float(" 0.25\t"), 0.25);
  EXPECT_EQ(python_float("+1_0.5"), 10.5);
  EXPECT_EQ(python_float("-.5"), -0.5);
  EXPECT_EQ(python_float("1e999"), HUGE_VAL);
  EXPECT_EQ(python_float("-1e999"), -HUGE_VAL);
  EXPECT_EQ(python_float("1e-999"), 0);
  EXPECT_EQ(python_float("Infinity"), HUGE_VAL);
  EXPECT_TRUE(std::isnan(*python_float("NaN")));
}

TEST(PythonFloat, RefusesWhatPythonRefuses) {
  for (const char* text :
       {"", " ", "+", "--1", "+-1", "1e", "0x10", "1_", "_1", "1__0", "1 2", "nan(1)", "1,5", "x"})
    EXPECT_FALSE(python_float(text)) << text;
  EXPECT_FALSE(python_float(std::string_view("1\0", 2)));
}

TEST(ElapseSeconds, TakesTheLastElapseThatASecFollows) {
  EXPECT_EQ(elapse_seconds("lr 0.1, elapse 0.3628 sec"), 0.3628);
  EXPECT_EQ(elapse_seconds("elapse 1 sec, elapse 2 sec, elapse 3"), 2);
  EXPECT_EQ(elapse_seconds("elapse 1 sec samples/sec 2 sec"), 1);
  EXPECT_FALSE(elapse_seconds("elapse sec"));
  EXPECT_FALSE(elapse_seconds("elapse  sec"));
  EXPECT_FALSE(elapse_seconds("elapsed 3 sec"));
  EXPECT_FALSE(elapse_seconds("sec"));
  EXPECT_FALSE(elapse_seconds(""));
}

TEST(SamplesPerSecond, TakesTheFirstThatFits) {
  EXPECT_EQ(samples_per_second("Speed: 399.00 samples/sec"), 399);
  EXPECT_EQ(samples_per_second("Speed: x Speed: 12.5 samples/sec Speed: 9.9 samples/sec"), 12.5);
  EXPECT_EQ(samples_per_second("Speed: 399 samples/sec"), 399);  // the dot is any character, a digit too
  EXPECT_EQ(samples_per_second("Speed: 1e3 samples/sec"), 1000);
  EXPECT_FALSE(samples_per_second("Speed: 39 samples/sec"));
  EXPECT_FALSE(samples_per_second("Speed: 3,9 samples/sec"));
  EXPECT_FALSE(samples_per_second("Speed: -3.9 samples/sec"));
  EXPECT_FALSE(samples_per_second("Speed: nan samples/sec"));
  EXPECT_FALSE(samples_per_second("Speed: 399.0"));
  EXPECT_FALSE(samples_per_second("Speed: "));
}

TEST(DecimalBetween, TakesTheFirstThatFits) {
  const auto total = [](const char* line) { return decimal_between(line, "Total:", " it/sec"); };
  EXPECT_EQ(total("Rank:27.30 it/sec Total:218.84 it/sec"), 218.84);
  EXPECT_EQ(total("Total:1 it/sec Total:2.5 it/sec Total:3.5 it/sec"), 2.5);
  for (const char* line : {"Total:1x5 it/sec", "Total:.5 it/sec", "Total:5. it/sec", "Total:1.5it/sec",
                           "Total:1.5", "Total:-1.5 it/sec", "Total:nan it/sec", "Total: 1.5 it/sec", ""})
    EXPECT_FALSE(total(line)) << line;
  EXPECT_EQ(decimal_between("x qps:12.34acc", " qps:", ""), 12.34);
}

TEST(PythonInt, ReadsWhatPythonReads) {
  EXPECT_EQ(python_int(" 1_0\t"), 10);
  EXPECT_EQ(python_int("+7"), 7);
  EXPECT_EQ(python_int("-007"), -7);
  for (const char* text : {"", " ", "1.0", "+-1", "_1", "1__0", "0x1", "1 2", "99999999999999999999"})
    EXPECT_FALSE(python_int(text)) << text;
}

TEST(FindStamp, ReadsTheFirst) {
  const Stamp stamp = find_stamp("x 2025-1-2 3:04:05,678901 2026-01-01 00:00:00,000");
  EXPECT_EQ(stamp.error, StampError::none);
  EXPECT_EQ(stamp.microseconds, 1735787045678000);
  EXPECT_EQ(find_stamp("12025-01-02 00:00:00,000").microseconds, 1735776000000000);
}

TEST(FindStamp, KnowsTheCalendar) {
  EXPECT_EQ(find_stamp("2024-02-29 00:00:00,000").error, StampError::none);
  for (const char* text : {"2025-02-29 00:00:00,000", "2025-13-01 00:00:00,000", "2025-00-01 00:00:00,000",
                           "2025-01-01 24:00:00,000", "2025-01-01 00:60:00,000", "2025-01-01 00:00:60,000",
                           "0000-01-01 00:00:00,000"})
    EXPECT_EQ(find_stamp(text).error, StampError::no_date) << text;
}

TEST(FindStamp, FindsNoneInOtherText) {
  for (const char* text : {"", "2025", "2025-", "2025-01-02", "2025-01-02 00:00:00", "2025-01-02 00:00:00,12",
                           "2025-001-02 00:00:00,000", "25-01-02 00:00:00,000"})
    EXPECT_EQ(find_stamp(text).error, StampError::no_stamp) << text;
}

TEST(NumberBetween, WantsBothNeighbors) {
  EXPECT_EQ(number_between("[Pass 0, train batch 19]", "train batch ", "]"), 19);
  EXPECT_FALSE(number_between("train batch ]", "train batch ", "]"));
  EXPECT_FALSE(number_between("train batch 19", "train batch ", "]"));
  EXPECT_FALSE(number_between("train batch -1]", "train batch ", "]"));
  EXPECT_FALSE(number_between("train batch 99999999999999999999]", "train batch ", "]"));
  EXPECT_FALSE(number_between("test batch 1]", "train batch ", "]"));
}

}  // namespace
}  // namespace plumb
