// SPDX-License-Identifier: Apache-2.0
// A folder of one user's in a place where all may make one, as /tmp.
//
// Thread: any; no state.
#pragma once

#include <string>

#include "espalier/error.hpp"

namespace espalier::base {

/// Makes a folder that only this user may use, or checks that it is one: a folder and no link to
/// one, of this user, and of mode 0700. Errors: not_permitted (it is something else; another user
/// may have made it to impersonate this one), system.
Result<void> make_private_folder(const std::string& path);

}  // namespace espalier::base
