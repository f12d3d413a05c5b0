// SPDX-License-Identifier: Apache-2.0
// Pipelines by chance, and rows whose values meet: few different ones, nulls, NaNs, borders now and
// then, and bytes that no value needs set to anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/testing/memory_rows.hpp"

namespace espalier::table {

/// Of 1 to 8 columns of short types, seldom of any.
[[nodiscard]] Schema random_small_schema(base::Random& random);

/// Rows that are not canonical. `wild`: how many values in 1000 are at a border.
[[nodiscard]] MemoryRows random_small_rows(base::Random& random, const Schema& schema,
                                           std::size_t count, unsigned wild);

/// Any pipeline, checked. Its regular expressions are `regexes`', else LiteralRegexes'; they are
/// ones that RE2 takes.
[[nodiscard]] Pipeline random_pipeline(base::Random& random, const Schema& schema,
                                       RegexCompiler* regexes = nullptr);

/// The bytes of one that was built of well-typed parts, most of them within all limits.
[[nodiscard]] PipelineBuilder random_builder(base::Random& random, const Schema& schema);

}  // namespace espalier::table
