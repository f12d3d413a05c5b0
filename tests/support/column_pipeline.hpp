// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/table/pipeline_builder.hpp"

namespace espalier::test {

/// A pipeline of the first so many columns, of all rows.
inline std::vector<std::byte> pipeline_of_columns(std::uint32_t count) {
  table::PipelineBuilder builder;
  std::vector<table::PipelineBuilder::NodeId> columns;
  for (std::uint32_t i = 0; i < count; ++i) columns.push_back(builder.column(i));
  builder.project(columns);
  return *builder.finish();
}

}  // namespace espalier::test
