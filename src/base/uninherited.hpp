// SPDX-License-Identifier: Apache-2.0
// Descriptors that a forked process does not inherit: those of connections. Without this a peer
// would not see that a process has ended while a child of it lives. (O_CLOEXEC is for children that
// call exec; this is for those that do not.)
//
// Thread: any; each descriptor's calls one at a time.
#pragma once

namespace espalier::base {

/// Closes the descriptor in each process that is forked from now on. Numbers from 65536 on are
/// inherited all the same.
void close_in_children(int number);
/// Reverts that, which must be done before the descriptor is closed.
void inherit_again(int number);

}  // namespace espalier::base
