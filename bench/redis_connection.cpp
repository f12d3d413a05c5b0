// SPDX-License-Identifier: Apache-2.0
#include "bench/redis_connection.hpp"

#include <fmt/core.h>

#include <charconv>
#include <stdexcept>

namespace espalier::bench {

std::optional<RedisAddress> parse_redis_address(std::string_view text) {
  RedisAddress address;
  if (text.starts_with("unix:")) {
    address.path = text.substr(5);
    return address.path.empty() ? std::nullopt : std::optional(address);
  }
  if (!text.starts_with("tcp:")) return std::nullopt;
  text.remove_prefix(4);
  const std::size_t colon = text.rfind(':');  // hosts may be IPv6 addresses
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  address.host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const char* const end = port.data() + port.size();
  const auto [at, error] = std::from_chars(port.data(), end, address.port);
  if (error != std::errc() || at != end || address.port == 0) return std::nullopt;
  return address;
}

std::string to_string(const RedisAddress& address) {
  if (!address.path.empty()) return "unix:" + address.path;
  return fmt::format("tcp:{}:{}", address.host, address.port);
}

RedisConnection::RedisConnection(const RedisAddress& address)
    : name_(to_string(address)),
      context_(address.path.empty() ? redisConnect(address.host.c_str(), address.port)
                                    : redisConnectUnix(address.path.c_str())) {
  if (context_ == nullptr || context_->err != 0) {
    throw std::runtime_error(fmt::format("cannot connect to a Redis at {}: {}", name_,
                                         context_ ? context_->errstr : "no memory"));
  }
}

void RedisConnection::append(std::span<const std::string_view> words) {
  starts_.clear();
  lengths_.clear();
  for (const std::string_view word : words) {
    starts_.push_back(word.data() == nullptr ? "" : word.data());
    lengths_.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), starts_.data(),
                             lengths_.data()) != REDIS_OK) {
    throw_broken();
  }
}

RedisReply RedisConnection::next() {
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) throw_broken();
  return RedisReply(static_cast<redisReply*>(reply));
}

RedisReply RedisConnection::command(std::span<const std::string_view> words) {
  append(words);
  RedisReply reply = next();
  if (reply->type == REDIS_REPLY_ERROR) {
    throw std::runtime_error(
        fmt::format("the Redis at {} refuses {}: {}", name_, words.front(), text_of(*reply)));
  }
  return reply;
}

std::string RedisConnection::info(std::string_view section, std::string_view field) {
  const RedisReply reply = command({"INFO", section});
  const std::string wanted = fmt::format("\r\n{}:", field);  // no section begins with a field
  const std::string_view text = text_of(*reply);
  const std::size_t at = text.find(wanted);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + wanted.size());
  return std::string(rest.substr(0, rest.find('\r')));
}

void RedisConnection::throw_broken() const {
  throw std::runtime_error(
      fmt::format("the connection to the Redis at {} broke: {}", name_, context_->errstr));
}

}  // namespace espalier::bench
