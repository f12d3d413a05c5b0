// SPDX-License-Identifier: Apache-2.0
// All public headers of a client. Start at map.hpp, or for tables at table.hpp.
#pragma once

#include "espalier/client_secret.hpp"  // IWYU pragma: export
#include "espalier/error.hpp"          // IWYU pragma: export
#include "espalier/expression.hpp"     // IWYU pragma: export
#include "espalier/map.hpp"            // IWYU pragma: export
#include "espalier/query.hpp"          // IWYU pragma: export
#include "espalier/sequencer.hpp"      // IWYU pragma: export
#include "espalier/table.hpp"          // IWYU pragma: export
#include "espalier/table_error.hpp"    // IWYU pragma: export
#include "espalier/table_key.hpp"      // IWYU pragma: export
#include "espalier/transaction.hpp"    // IWYU pragma: export
#include "espalier/types.hpp"          // IWYU pragma: export
#include "espalier/value.hpp"          // IWYU pragma: export
