// SPDX-License-Identifier: Apache-2.0
// The terminal of this process as a Screen: the alternate screen, without a cursor, in raw mode.
// The previous state is restored when the Screen is destroyed, when a signal ends the process, and
// while it is stopped (Ctrl-Z).
//
// A fatal signal ends the process immediately, as without the Screen; ignored signals (nohup) stay
// ignored. Signals about changes are blocked and read from a descriptor, so that nothing happens
// between two pictures.
//
// Thread: one at a time; one Screen in a process. Threads that start later inherit its mask.
#pragma once

#include <memory>
#include <ostream>

#include "tools/screen.hpp"

namespace espalier::tools {

/// Takes over the terminal on standard input and output; null if either is no terminal, or if it
/// cannot position text. Pictures go into `out`, which writes to standard output and outlives the
/// Screen.
[[nodiscard]] std::unique_ptr<Screen> open_terminal_screen(std::ostream& out);

}  // namespace espalier::tools
