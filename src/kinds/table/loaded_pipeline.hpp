// SPDX-License-Identifier: Apache-2.0
// A pipeline that is kept, to run again and again with other constants: the same operators and
// expressions, and so the same columns of its result.
//
//   loaded: the message of a pipeline              run: wire::LoadedRun | constants | heap
//
// A run brings all constants anew. Each must be of the kind and scale of the one that it stands
// for, and null if and only if that was; the whole is then checked like any other message.
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

/// Constants, with what their texts lie in.
struct RunConstants {
  std::vector<wire::ConstantValue> values;
  std::string heap;
};

/// Whether bytes are a run of a loaded pipeline, and none that comes with it.
[[nodiscard]] bool is_loaded_run(std::span<const std::byte> bytes);
/// Takes one apart, from any bytes. Errors: whatever breaks its form.
struct LoadedRunMessage {
  std::uint64_t pipeline = 0;
  RunConstants constants;
};
[[nodiscard]] PipelineResult<LoadedRunMessage> decode_loaded_run(std::span<const std::byte> bytes);
/// The bytes of a run. Requires: counts within the format's limits.
[[nodiscard]] std::vector<std::byte> encode_loaded_run(std::uint64_t pipeline,
                                                       const RunConstants& constants);

/// The message of a pipeline with other constants. Errors: a constant is of another kind than the
/// pipeline's, there are too few, too many, or together they are too long.
[[nodiscard]] PipelineResult<std::vector<std::byte>> with_constants(const PipelineMessage& loaded,
                                                                    RunConstants constants);

}  // namespace espalier::table
