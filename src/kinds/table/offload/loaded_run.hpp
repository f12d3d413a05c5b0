// SPDX-License-Identifier: Apache-2.0
// Loads pipelines into a session, and resolves runs of them.
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

/// The full pipeline of a run of a loaded one (kinds/table/loaded_pipeline.hpp), for the table of
/// this number. Cost: a copy of the pipeline.
/// Errors: invalid_argument (the run is malformed, or for another table), not_found.
std::expected<std::vector<std::byte>, RunRefusal> message_of_run(
    const LoadedPipelines& loaded, std::uint32_t table, std::span<const std::byte> payload);

/// Keeps a pipeline for the requesting session, and answers with its number, or with an error in
/// words.
Next keep_pipeline(Call& call, LoadedPipeline pipeline);

}  // namespace espalier::offload
