// SPDX-License-Identifier: Apache-2.0
// For tests: two endpoints of one process, connected, and what they offer each other.
//
// Thread: one at a time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "fabric/shm/endpoint.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::shm {

inline constexpr RemoteRights kReadWrite = RemoteRights::read | RemoteRights::write;
inline constexpr RemoteRights kAllRights = kReadWrite | RemoteRights::atomic;
inline constexpr std::uint64_t kLong = 3600'000'000'000;  // longer than a test may take

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// One endpoint with its queues, and at most one pair.
struct Side {
  Side()
      : table(*RegionTable::create()),
        endpoint(*open(table)),
        sends(*endpoint, 4096),
        receives(*endpoint, 4096) {}

  [[nodiscard]] QueuePairOptions options() {
    QueuePairOptions options;
    options.sends = &sends;
    options.receives = &receives;
    return options;
  }
  /// The next completion of a queue, if one has come.
  std::optional<Completion> take(CompletionQueue& queue) {
    Completion completion;
    if (queue.poll({&completion, 1}) == 0) return std::nullopt;
    return completion;
  }

  std::shared_ptr<RegionTable> table;
  std::unique_ptr<Endpoint> endpoint;
  CompletionQueue sends;
  CompletionQueue receives;
  std::unique_ptr<QueuePair> pair;
};

/// Calls both until it is so.
template <class Condition>
void until(Side& one, Side& other, const Condition& condition) {
  while (!condition()) {
    one.endpoint->progress();
    other.endpoint->progress();
    std::this_thread::yield();
  }
}

/// Connects `client` to `target`, which accepts it.
inline void connect(Side& client, Side& target, const std::string& path,
                    const QueuePairOptions& client_options,
                    const QueuePairOptions& target_options) {
  client.pair = *client.endpoint->connect(path, client_options, bytes_of("hello"));
  std::optional<ConnectRequest> request;
  until(client, target, [&] {
    request = target.endpoint->next_request();
    return request.has_value();
  });
  target.pair = *target.endpoint->accept(*request, target_options, bytes_of("welcome"));
  until(client, target, [&] { return client.pair->state() != QueuePair::State::connecting; });
}

/// Two sides, connected, and a region of the target that any may do anything with.
struct Connected {
  explicit Connected(std::uint64_t region_bytes = 1 << 16, RemoteRights rights = kAllRights)
      : memory(*memory::SharedMemory::create("test", region_bytes)) {
    EXPECT_TRUE(target.endpoint->listen(path()));
    connect(client, target, path(), client.options(), target.options());
    region = *target.table->offer({memory.at(0), memory.bytes(), memory.descriptor(), 0}, rights);
  }
  [[nodiscard]] std::string path() const { return (folder / "socket").string(); }
  [[nodiscard]] const RemoteRegion& remote() const { return region.remote(); }

  /// Posts at the client, and waits for the completion.
  Completion run(const WorkRequest& request) {
    EXPECT_EQ(client.pair->post(request).taken, 1u);
    return next(client.sends);
  }
  Completion next(CompletionQueue& queue) {
    std::optional<Completion> completion;
    until(client, target, [&] {
      completion =
          (&queue == &client.sends || &queue == &client.receives ? client : target).take(queue);
      return completion.has_value();
    });
    return *completion;
  }
  void wait_for_both_ends() {
    until(client, target, [&] {
      return client.pair->state() == QueuePair::State::error &&
             target.pair->state() == QueuePair::State::error;
    });
  }

  base::TemporaryFolder folder;
  memory::SharedMemory memory;
  Side target;
  Side client;
  Registration region;
};

}  // namespace espalier::fabric::shm
