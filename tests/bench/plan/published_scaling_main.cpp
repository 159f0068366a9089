// published_scaling [--json]: prints how well the model predicts published scaling.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/bench/plan/published_scaling.h"

int main(int argc, char**) {
  using namespace plumb;
  const PublishedValidation validation = validate_published(published_results());
  fmt::print("{}", argc > 1 ? validation_json(validation).dump() : validation_text(validation));
}
