// SPDX-License-Identifier: Apache-2.0
// One READ of a map's header for all walks of a batch: those that begin between two looks at what
// has come. The walk that begins first reads it for the others, too.
//
// Why a walk may use it: the READ was posted after the request was taken, for a request that comes
// ends the batch; and at the epoch at which the walk began, or a later one, for a lease is renewed
// between batches (DESIGN §2.1 rule 2, §2.2 rule 7). No header is kept for a later batch.
//
// Where READs keep their order, what a walk reads after that READ was posted comes after it; where
// they do not, walks wait until it has come before they read more.
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

/// Memory that READs go to: a whole number of words, and with one to spare at either end.
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
  /// Makes the walk ready when it has come.
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
