// SPDX-License-Identifier: Apache-2.0
// For tests: numbers in a line that a benchmark printed.
#pragma once

#include "bench/report.hpp"

namespace espalier::bench {

inline double number(const Json& line, const char* key) { return line.at(key).get<double>(); }

}  // namespace espalier::bench
