// SPDX-License-Identifier: Apache-2.0
// Finds the newest complete checkpoint, and reads its records. Treats all bytes as untrusted.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "log/checkpoint_format.hpp"
#include "log/log_error.hpp"
#include "log/log_file.hpp"
#include "log/recovery.hpp"

namespace espalier::log {

/// Validates the first bytes of the checkpoint of this number.
/// Errors: newer, other_node, checkpoint (damaged).
[[nodiscard]] std::expected<CheckpointHeader, LogFault> read_checkpoint_header(
    std::span<const std::byte> bytes, std::uint64_t store, std::uint64_t number);

/// Reads a checkpoint back after writing, before it is relied on. Memory: 4 MiB, and the longest
/// block.
class CheckpointCheck {
 public:
  /// Checks the file of this name, which should have this header. Errors: system.
  [[nodiscard]] static LogResult<std::unique_ptr<CheckpointCheck>> begin(
      LogFolder& folder, const CheckpointHeader& header, const std::string& name);
  CheckpointCheck(const CheckpointCheck&) = delete;
  CheckpointCheck& operator=(const CheckpointCheck&) = delete;
  ~CheckpointCheck();

  /// Reads about so many bytes of it. Returns whether there is more. Errors: checkpoint (its
  /// contents differ from what was written), those of a header, system.
  LogResult<bool> read_some(std::uint64_t bytes);

 private:
  class State;
  explicit CheckpointCheck(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

struct FoundCheckpoints {
  std::optional<CheckpointHeader> newest;  // of the complete ones
  std::vector<LogError> damaged;           // newer ones, damaged or unreadable
  std::vector<std::string> unfinished;     // files of unfinished checkpoints
};

/// Whether the newest checkpoint is read before it is believed, or only if there is another.
enum class VerifyNewest : std::uint8_t { always, if_another };

/// Searches the folder, and verifies the newest checkpoint completely; if it is damaged, the next
/// older one. Changes nothing. Cost: one read of the file; of one that is not verified its header.
/// Errors: newer, other_node, system.
[[nodiscard]] LogResult<FoundCheckpoints> find_checkpoints(
    LogFolder& folder, std::uint64_t store, VerifyNewest verify = VerifyNewest::always);

/// Calls `apply` for each of its records, with sequence 0. Errors: checkpoint (it is damaged),
/// refused (by `apply`), system. Cost: one read of the file, memory for its longest block.
[[nodiscard]] LogResult<void> read_checkpoint(LogFolder& folder, const CheckpointHeader& checkpoint,
                                              const ApplyRecord& apply);

}  // namespace espalier::log
