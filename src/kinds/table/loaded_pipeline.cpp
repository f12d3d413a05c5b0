// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/loaded_pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"

namespace espalier::table {
namespace {

using wire::ConstantValue;
using wire::LoadedRun;

std::unexpected<PipelineError> wrong_run(std::string reason) {
  PipelineError error;
  error.reason = std::move(reason);
  return std::unexpected(std::move(error));
}

std::size_t run_bytes(std::size_t constants, std::size_t heap_bytes) {
  return base::round_up(sizeof(LoadedRun) + constants * sizeof(ConstantValue) + heap_bytes,
                        std::size_t{8});
}

}  // namespace

bool is_loaded_run(std::span<const std::byte> bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == wire::kLoadedRunMagic;
}

PipelineResult<LoadedRunMessage> decode_loaded_run(std::span<const std::byte> bytes) {
  LoadedRun header;
  if (bytes.size() > wire::kPipelineBytesMax) return wrong_run("the run has more than 64 KiB");
  if (bytes.size() < sizeof header) return wrong_run("the run is cut off");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != wire::kLoadedRunMagic)
    return wrong_run("this is no run of a loaded pipeline");
  if (header.version != wire::kPipelineVersion) return wrong_run("the run is of another version");
  if (header.constants > wire::kPipelineConstantsMax) {
    return wrong_run("there are more than 2048 constants");
  }
  if (header.bytes != bytes.size() ||
      run_bytes(header.constants, header.heap_bytes) != bytes.size()) {
    return wrong_run("the run's length is not that of its parts");
  }
  LoadedRunMessage run;
  run.pipeline = header.pipeline;
  run.constants.values.resize(header.constants);
  const std::byte* const values = bytes.data() + sizeof header;
  const std::size_t value_bytes = header.constants * sizeof(ConstantValue);
  if (value_bytes != 0) std::memcpy(run.constants.values.data(), values, value_bytes);
  run.constants.heap.assign(reinterpret_cast<const char*>(values + value_bytes), header.heap_bytes);
  return run;
}

std::vector<std::byte> encode_loaded_run(std::uint64_t pipeline, const RunConstants& constants) {
  const std::size_t bytes = run_bytes(constants.values.size(), constants.heap.size());
  ESPALIER_ASSERT(bytes <= wire::kPipelineBytesMax);
  LoadedRun header{};
  header.magic = wire::kLoadedRunMagic;
  header.version = wire::kPipelineVersion;
  header.constants = static_cast<std::uint16_t>(constants.values.size());
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.heap_bytes = static_cast<std::uint32_t>(constants.heap.size());
  header.pipeline = pipeline;
  std::vector<std::byte> out(bytes);
  std::memcpy(out.data(), &header, sizeof header);
  std::byte* at = out.data() + sizeof header;
  const std::size_t value_bytes = constants.values.size() * sizeof(ConstantValue);
  if (value_bytes != 0) std::memcpy(at, constants.values.data(), value_bytes);
  if (!constants.heap.empty()) {
    std::memcpy(at + value_bytes, constants.heap.data(), constants.heap.size());
  }
  return out;
}

PipelineResult<std::vector<std::byte>> with_constants(const PipelineMessage& loaded,
                                                      RunConstants constants) {
  if (constants.values.size() != loaded.constants.size()) {
    return wrong_run("the loaded pipeline has " + std::to_string(loaded.constants.size()) +
                     " constants, and the run " + std::to_string(constants.values.size()));
  }
  for (std::size_t i = 0; i < constants.values.size(); ++i) {
    const ConstantValue& is = constants.values[i];
    const ConstantValue& was = loaded.constants[i];
    if (is.kind == was.kind && is.scale == was.scale && is.null == was.null) continue;
    return wrong_run("constant " + std::to_string(i) +
                     " of the run has another type than the loaded pipeline's");
  }
  PipelineMessage message = loaded;
  message.constants = std::move(constants.values);
  message.heap = std::move(constants.heap);
  if (encoded_bytes(message) > wire::kPipelineBytesMax) {
    return wrong_run("with these constants the pipeline has more than 64 KiB");
  }
  return encode_pipeline(message);
}

}  // namespace espalier::table
