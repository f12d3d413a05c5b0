// SPDX-License-Identifier: Apache-2.0
// Serialises operations, for histories that are recorded in several processes and checked in one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/history.hpp"

namespace espalier::test {

[[nodiscard]] std::string to_bytes(const std::vector<Operation>& operations);
/// The opposite. Throws std::runtime_error at bytes that to_bytes does not make.
[[nodiscard]] std::vector<Operation> operations_of(std::string_view bytes);

}  // namespace espalier::test
