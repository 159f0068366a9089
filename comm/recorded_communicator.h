// Communicator that records the collectives of another one on a StatusBoard.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/status_board.h"

namespace plumb {

// For a communicator whose collectives the host carries (enqueues() is false). `names`: of buffers, by
// BufferId; others have none. `board` must outlive it. An end is recorded at the first progress() or wait()
// that sees it.
std::unique_ptr<Communicator> make_recorded_communicator(std::unique_ptr<Communicator> carrier,
                                                         StatusBoard& board, std::vector<std::string> names);

}  // namespace plumb
