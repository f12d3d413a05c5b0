// SPDX-License-Identifier: Apache-2.0
// A Redis server as a child process that keeps nothing on disk, listens at a UNIX socket in a
// temporary folder, or at a TCP port of the loopback interface, and ends with this process, also in
// a crash.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/temporary_folder.hpp"
#include "bench/redis_connection.hpp"
#include "bench/server_process.hpp"

namespace espalier::bench {

inline constexpr const char* kRedisProgram = "redis-server";

/// The path of a program found by its name, or nothing. `path`: as the variable PATH; may be null.
std::optional<std::string> find_program(std::string_view name, const char* path);

enum class RedisDoor : std::uint8_t { unix_socket, tcp };

class RedisServer {
 public:
  /// Starts the Redis found in PATH, and waits until it listens. It is killed with this object, or
  /// when the calling thread ends. Errors: throws std::runtime_error with the reason.
  explicit RedisServer(RedisDoor door = RedisDoor::unix_socket);

  [[nodiscard]] const RedisAddress& address() const { return address_; }
  [[nodiscard]] pid_t process() const { return child_->process(); }

 private:
  base::TemporaryFolder folder_;  // outlives the child
  RedisAddress address_;
  std::optional<ServerProcess> child_;
};

}  // namespace espalier::bench
