// Losses that show that training diverged: times are right, but nobody trains like that.
#pragma once

#include <string>

namespace plumb {

// "the loss grew from 6.91 to 512: training diverges", "the loss became nan: …"; empty for losses that don't.
// Losses of random labels stay near their first; those of a run that diverges leave it by magnitudes.
std::string divergence_text(double first, double last);

}  // namespace plumb
