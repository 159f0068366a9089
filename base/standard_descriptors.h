// Descriptors 0, 1 and 2, which a program may be started without.
#pragma once

namespace plumb {

// Opens those that are closed on /dev/null, before any other file is opened: a log or a socket that got one
// of their numbers would take in what anybody prints.
void open_standard_descriptors();

}  // namespace plumb
