// Results of checks as JUnit's XML, which CI systems show.
#pragma once

#include <string>
#include <vector>

namespace plumb {

struct JunitCase {
  enum class Result { passed, skipped, failure, error };

  std::string name;
  Result result = Result::passed;
  std::string type;     // of a failure or error: "regression"
  std::string message;  // whatever the result
};

// One test suite.
std::string junit_text(const std::string& class_name, const std::string& suite,
                       const std::vector<JunitCase>& cases);

}  // namespace plumb
