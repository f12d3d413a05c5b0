// SPDX-License-Identifier: Apache-2.0
// Prepared pipelines: kept to run repeatedly with other constants; operators, expressions and
// result columns stay the same.
//
//   loaded: the message of a pipeline              run: wire::LoadedRun | constants | heap
//
// A run brings all constants anew. Each must have the kind and scale of the one it replaces, and be
// null if and only if that was; the whole is then checked like any other message.
//
// Thread: immutable; safe to use from any.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kinds/table/pipeline_message.hpp"

namespace espalier::table {

/// Constants, and the heap of their texts.
struct RunConstants {
  std::vector<wire::ConstantValue> values;
  std::string heap;
};

/// Whether bytes are a run of a loaded pipeline, rather than a pipeline.
[[nodiscard]] bool is_loaded_run(std::span<const std::byte> bytes);
/// Parses one, from any bytes. Errors: any violation of the format.
struct LoadedRunMessage {
  std::uint64_t pipeline = 0;
  RunConstants constants;
};
[[nodiscard]] PipelineResult<LoadedRunMessage> decode_loaded_run(std::span<const std::byte> bytes);
/// The bytes of a run. Requires: counts within the format's limits.
[[nodiscard]] std::vector<std::byte> encode_loaded_run(std::uint64_t pipeline,
                                                       const RunConstants& constants);

/// The message of a pipeline with other constants. Errors: a constant has another kind than the
/// pipeline's; too few, too many, or too long together.
[[nodiscard]] PipelineResult<std::vector<std::byte>> with_constants(const PipelineMessage& loaded,
                                                                    RunConstants constants);

}  // namespace espalier::table
