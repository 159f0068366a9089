// What launchers and terminals put into log lines.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

struct WrittenLine {
  std::string_view writer;  // the rank or process that the launcher names, "3"; empty: it names none
  std::string_view text;    // the line as the program wrote it
};

// Takes colors out of lines, and prefixes of mpirun ("[1,3]<stdout>:"), torchrun ("[default3]:"), srun
// ("3: "), kubectl ("[pod/name/container] ") and Partial FC ("rank-id:3:") off their front.
class LinePrefix {
 public:
  // Valid until the next call, and as long as `line` is.
  WrittenLine strip(std::string_view line);

 private:
  std::string plain_;  // a line without its colors
};

}  // namespace plumb
