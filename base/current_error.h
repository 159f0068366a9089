// What an exception means to a user.
#pragma once

#include "base/error.h"

namespace plumb {

// The exception that is being handled: an Error as it is; where memory or threads can't be had, 71; any other
// one is a defect (70).
Error current_error();

}  // namespace plumb
