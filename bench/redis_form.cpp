// SPDX-License-Identifier: Apache-2.0
#include "bench/redis_form.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

namespace espalier::bench {
namespace {

constexpr std::uint64_t kPageItems = 1000;  // that contents() requests together
constexpr int kPassesMax = 10;

void fail(const redisReply& reply, Answers& answers) {
  answers.fail(reply.type == REDIS_REPLY_ERROR
                   ? std::string(text_of(reply))
                   : fmt::format("an answer of an unexpected type, {}", reply.type));
}

[[noreturn]] void refuse(std::string_view form) {
  throw std::runtime_error(fmt::format("Redis: no such operation on {}", form));
}

class Strings : public RedisForm {
 public:
  void ask(RedisConnection& connection, const Request& request) override {
    switch (request.op) {
      case Op::get: return connection.append({"GET", request.key});
      case Op::put: return connection.append({"SET", request.key, request.value});
      case Op::insert: return connection.append({"SET", request.key, request.value, "NX"});
      case Op::erase: return connection.append({"DEL", request.key});
      default: refuse("strings");
    }
  }

  void take(RedisConnection& connection, const Request& request, Answers& answers) override {
    const RedisReply reply = connection.next();
    if (request.op == Op::get && reply->type == REDIS_REPLY_STRING) {
      answers.value(request.tag, text_of(*reply));
    } else if (request.op == Op::get && reply->type == REDIS_REPLY_NIL) {
      answers.missing(request.tag);
    } else if (request.op == Op::erase && reply->type == REDIS_REPLY_INTEGER) {
      answers.written(request.tag, reply->integer == 1);
    } else if (reply->type == REDIS_REPLY_STATUS) {
      answers.written(request.tag, true);
    } else if (request.op == Op::insert && reply->type == REDIS_REPLY_NIL) {
      answers.written(request.tag, false);
    } else {
      fail(*reply, answers);
    }
  }

  // SCAN returns every key, but some twice if the table shrinks meanwhile.
  Contents contents(RedisConnection& connection) override {
    for (int pass = 0; pass < kPassesMax; ++pass) {
      const Contents result = read_all(connection);
      const RedisReply size = connection.command({"DBSIZE"});
      if (result.items == static_cast<std::uint64_t>(size->integer)) return result;
    }
    throw std::runtime_error("Redis: somebody else writes to it");
  }

 private:
  static Contents read_all(RedisConnection& connection) {
    Contents result;
    const std::string count = std::to_string(kPageItems);
    std::string cursor = "0";
    do {
      const RedisReply page = connection.command({"SCAN", cursor, "COUNT", count});
      const auto parts = elements_of(*page);
      if (parts.size() != 2) throw std::runtime_error("Redis: SCAN answered otherwise");
      cursor = text_of(*parts[0]);
      std::vector<std::string_view> words{"MGET"};
      for (const redisReply* key : elements_of(*parts[1])) words.push_back(text_of(*key));
      if (words.size() == 1) continue;
      const RedisReply values = connection.command(words);
      for (std::size_t i = 1; i < words.size(); ++i, ++result.items) {
        result.hash += item_hash(words[i], text_of(*elements_of(*values)[i - 1]));
      }
    } while (cursor != "0");
    return result;
  }
};

class SortedSet : public RedisForm {
 public:
  explicit SortedSet(std::uint32_t key_bytes) : key_bytes_(key_bytes) {}

  void ask(RedisConnection& connection, const Request& request) override {
    low_ = "[";
    low_ += request.key;
    switch (request.op) {
      case Op::insert:
        low_ += request.value;
        return connection.append({"ZADD", kSet, "0", std::string_view(low_).substr(1)});
      case Op::scan:
        high_ = request.high.empty() ? "+" : "(";
        high_ += request.high;
        break;
      case Op::scan_floor:
        set_above(request.key);
        connection.append({"ZREVRANGEBYLEX", kSet, high_, "-", "LIMIT", "0", "1"});
        set_above(request.high);
        break;
      default: refuse("a sorted set");
    }
    const std::string limit = request.limit == 0 ? "-1" : std::to_string(request.limit);
    connection.append({"ZRANGEBYLEX", kSet, low_, high_, "LIMIT", "0", limit});
  }

  void take(RedisConnection& connection, const Request& request, Answers& answers) override {
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    if (request.op == Op::scan_floor) {
      const RedisReply floor = connection.next();
      if (floor->type != REDIS_REPLY_ARRAY) fail(*floor, answers);
      for (const redisReply* member : elements_of(*floor)) {
        if (key_of(*member) == request.key) continue;  // then it is the first of the others
        sum += hash_of(*member);
        ++count;
      }
    }
    const RedisReply reply = connection.next();
    if (request.op == Op::insert) {
      if (reply->type != REDIS_REPLY_INTEGER) return fail(*reply, answers);
      return answers.written(request.tag, reply->integer == 1);
    }
    if (reply->type != REDIS_REPLY_ARRAY) return fail(*reply, answers);
    for (const redisReply* member : elements_of(*reply)) {
      if (request.limit != 0 && count == request.limit) break;  // the floor took the last place
      sum += hash_of(*member);
      ++count;
    }
    answers.items(request.tag, sum);
    answers.scan_done(request.tag, count);
  }

  Contents contents(RedisConnection& connection) override {
    Contents result;
    while (true) {
      const std::string first = std::to_string(result.items);
      const std::string last = std::to_string(result.items + kPageItems - 1);
      const RedisReply page = connection.command({"ZRANGE", kSet, first, last});
      if (elements_of(*page).empty()) return result;
      for (const redisReply* member : elements_of(*page)) {
        result.hash += hash_of(*member);
        ++result.items;
      }
    }
  }

 private:
  static constexpr std::string_view kSet = "espalier-bench";

  [[nodiscard]] std::string_view key_of(const redisReply& member) const {
    return text_of(member).substr(0, key_bytes_);
  }
  [[nodiscard]] std::uint64_t hash_of(const redisReply& member) const {
    const std::string_view bytes = text_of(member);
    return item_hash(bytes.substr(0, key_bytes_),
                     bytes.substr(std::min<std::size_t>(key_bytes_, bytes.size())));
  }

  // Makes high_ the bound that lies above `key` with any value, and below the next key.
  void set_above(std::string_view key) {
    high_ = "(";
    high_ += key;
    while (high_.size() > 1 && static_cast<unsigned char>(high_.back()) == 0xff) high_.pop_back();
    if (high_.size() == 1) {
      high_ = "+";  // no key is above
    } else {
      high_.back() = static_cast<char>(static_cast<unsigned char>(high_.back()) + 1);
    }
  }

  std::uint32_t key_bytes_;
  std::string low_;  // scratch space of ask
  std::string high_;
};

}  // namespace

std::unique_ptr<RedisForm> make_redis_strings() { return std::make_unique<Strings>(); }

std::unique_ptr<RedisForm> make_redis_sorted_set(std::uint32_t key_bytes) {
  return std::make_unique<SortedSet>(key_bytes);
}

}  // namespace espalier::bench
