// SPDX-License-Identifier: Apache-2.0
// Pipelines that a session has loaded: how one is kept, and what a run of one means.
//
// Thread: that of the session's scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "engine/call.hpp"

namespace espalier::offload {

class LoadedPipelines;
struct LoadedPipeline;

/// Why a run is refused.
struct RunRefusal {
  Error error;
  std::string words;
};

/// The pipeline that a run of a loaded one means (kinds/table/loaded_pipeline.hpp), as of the table
/// of this number. Errors: invalid_argument (the run is malformed, or for another table),
/// not_found.
/// Cost: a copy of the pipeline.
std::expected<std::vector<std::byte>, RunRefusal> message_of_run(
    const LoadedPipelines& loaded, std::uint32_t table, std::span<const std::byte> payload);

/// Keeps a pipeline for the session that asks, and answers with its number, or with an error in
/// words.
Next keep_pipeline(Call& call, LoadedPipeline pipeline);

}  // namespace espalier::offload
