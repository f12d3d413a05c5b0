// SPDX-License-Identifier: Apache-2.0
// Shares one READ of a map's header among all walks of a batch, i.e. those that begin between two
// polls for completions. The first walk of the batch reads it for the others, too.
//
// Correctness: the READ is posted after the request was received, because a new request ends the
// batch; and at the epoch at which the walk began, or a later one, because a lease is renewed
// between batches (DESIGN §2.1 rule 2, §2.2 rule 7). No header is kept for a later batch.
//
// If READs are ordered, later READs of a walk arrive after it; otherwise walks wait for it before
// they read more.
//
// Thread: one: that of the reader.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/task.hpp"

namespace espalier::place {

/// Destination of READs: a whole number of words, with a spare one at either end.
struct Landing {
  std::unique_ptr<std::uint64_t[]> words;
  std::uint64_t bytes = 0;
  std::byte* room(std::uint64_t wanted);
};

class BatchHeader {
 public:
  [[nodiscard]] std::byte* room(std::uint64_t bytes) { return landing_.room(bytes); }
  [[nodiscard]] bool come() const { return come_; }
  [[nodiscard]] bool failed() const { return failed_; }
  /// Makes the walk ready when it has arrived.
  void wait(std::coroutine_handle<> walk, base::ReadyQueue& ready) {
    waiting_.push_back({walk, &ready});
  }
  void has_come(bool failed) {
    come_ = true;
    failed_ = failed;
    for (const auto& [walk, ready] : std::exchange(waiting_, {})) ready->push(walk);
  }

 private:
  Landing landing_;
  bool come_ = false;
  bool failed_ = false;
  std::vector<std::pair<std::coroutine_handle<>, base::ReadyQueue*>> waiting_;
};

}  // namespace espalier::place
