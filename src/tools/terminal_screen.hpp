// SPDX-License-Identifier: Apache-2.0
// The terminal of this process as a Screen: its second page, without a cursor, keys as they are
// pressed. What it was like before comes back when the Screen goes, when a signal ends the process,
// and for as long as it is stopped (Ctrl-Z).
//
// A signal that ends a process ends this one at once, whatever it waits for, as it would have
// without the Screen; what nobody wants to hear of (nohup) stays unheard. Those that tell of a
// change are blocked and read from a descriptor, so that nothing happens between two pictures.
//
// Thread: one at a time; one Screen in a process. Threads that start later inherit its mask.
#pragma once

#include <memory>
#include <ostream>

#include "tools/screen.hpp"

namespace espalier::tools {

/// Takes the terminal that standard input and output are; null if either is none, or if it cannot
/// place text. Pictures go into `out`, which writes to standard output and outlives the Screen.
[[nodiscard]] std::unique_ptr<Screen> open_terminal_screen(std::ostream& out);

}  // namespace espalier::tools
