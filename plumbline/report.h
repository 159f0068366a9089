// The page of `plumbline report`, which `plumbline accept` writes as well.
#pragma once

#include <filesystem>

namespace plumb {

// report.html in an accept's folder, as `plumbline report FOLDER` makes it. Throws Error.
void write_accept_report(const std::filesystem::path& folder);

}  // namespace plumb
