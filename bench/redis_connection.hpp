// SPDX-License-Identifier: Apache-2.0
// A connection to Redis: commands are buffered, and answers arrive in the same order.
//
// Thread: one for each connection.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::bench {

/// The address of a Redis.
struct RedisAddress {
  std::string path{};  ///< of its UNIX socket; empty: host and port
  std::string host{};
  std::uint16_t port = 0;
};

/// Takes "unix:PATH" and "tcp:HOST:PORT"; nothing for any other text.
std::optional<RedisAddress> parse_redis_address(std::string_view text);
std::string to_string(const RedisAddress& address);

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, FreeReply>;

/// The bytes of an answer that is a string or an error; empty for any other.
inline std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view() : std::string_view(reply.str, reply.len);
}

/// The elements of an answer, or none.
inline std::span<redisReply* const> elements_of(const redisReply& reply) {
  return {reply.element, reply.type == REDIS_REPLY_ARRAY ? reply.elements : 0};
}

class RedisConnection {
 public:
  /// Errors: throws std::runtime_error.
  explicit RedisConnection(const RedisAddress& address);

  /// Buffers a command until the next wait. The words are copied.
  void append(std::initializer_list<std::string_view> words) {
    append(std::span(words.begin(), words.size()));
  }
  void append(std::span<const std::string_view> words);

  /// Sends buffered commands and waits for the oldest outstanding answer. Errors: throws
  /// std::runtime_error if the connection broke.
  RedisReply next();

  /// One command and its answer, with no other outstanding. Errors: throws std::runtime_error, also
  /// if Redis refuses.
  RedisReply command(std::initializer_list<std::string_view> words) {
    return command(std::span(words.begin(), words.size()));
  }
  RedisReply command(std::span<const std::string_view> words);

  /// A field of INFO; empty if there is none.
  std::string info(std::string_view section, std::string_view field);

 private:
  struct Close {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  [[noreturn]] void throw_broken() const;

  std::string name_;  // of the server, for messages
  std::unique_ptr<redisContext, Close> context_;
  std::vector<const char*> starts_;  // scratch space of append
  std::vector<std::size_t> lengths_;
};

}  // namespace espalier::bench
