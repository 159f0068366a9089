#include "results/formats/line_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <utility>

namespace plumb {
namespace {

constexpr std::string_view kTrain = "[Pass {epoch}, batch {iteration}]*elapse {value} sec";

TEST(LineShape, GivesWhatItAsksFor) {
  Captured captured;
  EXPECT_EQ(match_shape(kTrain, "INFO: [Pass 3,\tbatch  17] loss nan, elapse 0.25 sec", captured),
            Fit::whole);
  EXPECT_EQ(captured.epoch, 3);
  EXPECT_EQ(captured.iteration, 17);
  EXPECT_EQ(captured.value, 0.25);
  EXPECT_FALSE(captured.count);
}

TEST(LineShape, FitsNotIfItsTextIsAnother) {
  Captured captured;
  EXPECT_EQ(match_shape(kTrain, "elapse 0.25 sec", captured), Fit::none);
  for (const char* line : {"[Pass 3, test batch 17] elapse 0.25 sec", "[Pass 3, batch 17]",
                           "[Pass 3, batch 17] elapsed 0.25 sec", "[Pass 3, batch 17] elapse 0.25 s",
                           "[Pass , batch 17] elapse 1 sec"})
    EXPECT_EQ(match_shape(kTrain, line, captured), Fit::begins) << line;
}

TEST(LineShape, IsNearWithAWordWhereANumberBelongs) {
  for (const auto& [line, misfit] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[Pass 3, batch x] elapse 0.25 sec", "x"},
           {"[Pass 3, batch -1] elapse 0.25 sec", "-1"},
           {"[Pass 3, batch 17] elapse 0,25 sec", "0,25"},
           {"[Pass 3, batch 17] elapse 1,530 sec", "1,530"},
           {"[Pass 3, batch 17.5] elapse 0.25 sec", "17.5"},
           {"[Pass 3, batch 99999999999999999999] elapse 0.25 sec", "99999999999999999999"}}) {
    Captured captured;
    EXPECT_EQ(match_shape(kTrain, line, captured), Fit::near) << line;
    EXPECT_EQ(captured.misfit, misfit) << line;
  }
}

TEST(LineShape, TriesALaterBeginningAndTheOtherShape) {
  constexpr std::string_view kEither = "^epoch: {iteration} step: {count}|^epoch time: {value} ms$";
  Captured captured;
  EXPECT_EQ(match_shape(kTrain, "[Pass 1 [Pass 2, batch 5] elapse 1 sec", captured), Fit::whole);
  EXPECT_EQ(captured.epoch, 2);
  EXPECT_EQ(match_shape(kEither, "epoch: 4 step: 2, loss is 7", captured), Fit::whole);
  EXPECT_EQ(captured.count, 2);
  EXPECT_EQ(match_shape(kEither, "epoch time: 320.8 ms ", captured), Fit::whole);
  EXPECT_EQ(captured.value, 320.8);
  EXPECT_FALSE(captured.iteration);
  EXPECT_EQ(match_shape(kEither, "epoch time: 320.8 ms, per", captured), Fit::begins);
  EXPECT_EQ(match_shape(kEither, "an epoch: 4 step: 2", captured), Fit::none);
}

TEST(LineShape, TakesTheEndOfARangeAndBlanksWhereTheyMayBe) {
  constexpr std::string_view kBatch = "Batch~[{iteration}]";
  Captured captured;
  for (const char* line : {"Batch[40]", "Batch [40]", "Batch [20-40]"}) {
    EXPECT_EQ(match_shape(kBatch, line, captured), Fit::whole) << line;
    EXPECT_EQ(captured.iteration, 40);
  }
}

TEST(TakeNumber, ReadsWhatFrameworksPrint) {
  const auto number = [](std::string_view text) { return take_number(text); };
  EXPECT_EQ(number("-0.5 x"), -0.5);
  EXPECT_EQ(number("1.1494e+01"), 11.494);
  EXPECT_EQ(number("1,530.81 x"), 1530.81);
  EXPECT_EQ(number("1,530,000"), 1'530'000);
  EXPECT_EQ(number("1,530"), 1);  // of which the rest fits no shape
  EXPECT_EQ(number("0,320.5"), 0);
  EXPECT_EQ(number("1.53K images"), 1530);
  EXPECT_EQ(number("2M"), 2e6);
  EXPECT_EQ(number("2Mi"), 2);
  EXPECT_EQ(number("1e999"), HUGE_VAL);
  EXPECT_EQ(number("inf"), HUGE_VAL);
  EXPECT_TRUE(std::isnan(*number("nan")));
  EXPECT_FALSE(number("x"));
  EXPECT_FALSE(number(""));
}

double microseconds(std::string_view line, StampKind kind) {
  const std::optional<Stamp> stamp = find_stamp(line, kind);
  return stamp && stamp->is_date ? stamp->microseconds : -1;
}

TEST(FindStamp, FindsTheFirstOfItsKind) {
  EXPECT_EQ(microseconds("at 1970-01-02 00:00:01,5 and 1971-01-01 00:00:00,0", StampKind::with_comma),
            kDay + 1.5e6);
  EXPECT_EQ(microseconds("DLL 1970-01-01 00:00:00.000123", StampKind::with_dot), 123);
  EXPECT_EQ(microseconds("W 1 I0102 0:00:00.0", StampKind::of_glog) -
                microseconds("I0101 00:00:00.0", StampKind::of_glog),
            kDay);
}

TEST(FindStamp, TellsNoStampFromNoDate) {
  EXPECT_FALSE(find_stamp("1970-01-01 00:00:00.5", StampKind::with_comma));
  EXPECT_FALSE(find_stamp("19700-01-01 00:00:00,5", StampKind::with_comma));
  EXPECT_FALSE(find_stamp("1970-01-01 00:00:00,", StampKind::with_comma));
  for (const char* line : {"2025-02-29 00:00:00,5", "2025-13-01 00:00:00,5", "2025-01-01 24:00:00,5",
                           "0000-01-01 00:00:00,5", "2025-01-01 00:60:00,5"})
    EXPECT_FALSE(find_stamp(line, StampKind::with_comma)->is_date) << line;
}

}  // namespace
}  // namespace plumb
