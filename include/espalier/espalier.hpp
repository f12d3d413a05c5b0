// SPDX-License-Identifier: Apache-2.0
// Everything an application needs. Start at map.hpp.
#pragma once

#include "espalier/error.hpp"  // IWYU pragma: export
#include "espalier/map.hpp"    // IWYU pragma: export
#include "espalier/types.hpp"  // IWYU pragma: export
