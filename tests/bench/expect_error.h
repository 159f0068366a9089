// Expects a rejected input's exit code and the words of its message.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace plumb {

inline void expect_error(ExitCode code, const std::vector<std::string>& words,
                         const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    const std::string sentence = error.what();
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    for (const std::string& word : words)
      EXPECT_NE(sentence.find(word), std::string::npos) << "'" << word << "' is missing in: " << sentence;
  }
}

}  // namespace plumb
