// SPDX-License-Identifier: Apache-2.0
// The constants of the P4 program (dataplane/p4), from the same place as those of the packet
// function: never typed again.
//
// Thread: any.
#pragma once

#include <string>

namespace espalier::dataplane {

/// The text of dataplane/p4/index_constants.p4. A test holds the file to it.
[[nodiscard]] std::string p4_constants();

}  // namespace espalier::dataplane
