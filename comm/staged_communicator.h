// Host communicator for buffers in device memory: copies each collective's data to page-locked host memory,
// runs the collective there, and copies back.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "kernels/device.h"

namespace plumb {

// All copies run on the communication lane, in order. wait(ticket) returns once the copy back is enqueued on
// the lane. Collectives go to `carrier` in start order. Host memory is allocated at the first reduction of a
// device buffer and kept for it. Destroy after the lane is idle and before the device; pending collectives
// are abandoned then.
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> carrier,
                                                       HostStaging& staging);

}  // namespace plumb
