// SPDX-License-Identifier: Apache-2.0
// Redis, in a process of its own, over a socket: a server that is started for the run, or a running
// one. For the commands of each workload see redis_form.hpp.
//
// Each thread has a connection and a pipeline on it: as many requests are in flight as for
// Espalier's maps. When half of them are answered, others follow, so that client and server work at
// the same time; each write and each read of the socket carries many.
//
// A running server must be empty, and is emptied at the end.
#include <fmt/core.h>

#include <charconv>
#include <deque>
#include <stdexcept>

#include "base/clock.hpp"
#include "bench/redis_form.hpp"
#include "bench/redis_server.hpp"
#include "bench/target.hpp"

namespace espalier::bench {
namespace {

class RedisSession : public TargetSession {
 public:
  RedisSession(const RedisAddress& address, std::unique_ptr<RedisForm> form,
               std::uint32_t in_flight)
      : connection_(address), form_(std::move(form)), in_flight_(in_flight) {}

  void run(std::span<const Request> requests, Answers& answers) override {
    run_window(requests, answers, nullptr);
  }

  // A request's time begins when it is buffered and ends when its answer is read, so it includes
  // waiting for those that travel in the same packet.
  void run_timed(std::span<const Request> requests, Answers& answers,
                 Latencies& latencies) override {
    run_window(requests, answers, &latencies);
  }

 private:
  struct Flight {
    Request request;
    std::uint64_t start_ns = 0;  // 0 without a clock
  };

  void run_window(std::span<const Request> requests, Answers& answers, Latencies* latencies) {
    while (!requests.empty() || !second_halves_.empty() || !flying_.empty()) {
      while (flying_.size() < in_flight_ && !second_halves_.empty()) {
        ask(second_halves_.front());
        second_halves_.pop_front();
      }
      while (flying_.size() < in_flight_ && !requests.empty()) {
        ask({requests.front(), latencies == nullptr ? 0 : base::monotonic_ns()});
        requests = requests.subspan(1);
      }
      do {
        take(answers, latencies);
      } while (flying_.size() > in_flight_ / 2);
    }
  }

  void ask(const Flight& flight) {
    form_->ask(connection_, flight.request);
    flying_.push_back(flight);
  }

  void take(Answers& answers, Latencies* latencies) {
    Flight flight = flying_.front();
    flying_.pop_front();
    form_->take(connection_, flight.request, answers);
    if (flight.request.op == Op::get && (flight.request.tag & kReadModifyWriteTag) != 0) {
      flight.request.op = Op::put;
      second_halves_.push_back(flight);
    } else if (latencies != nullptr) {
      latencies->record(base::monotonic_ns() - flight.start_ns);
    }
  }

  RedisConnection connection_;
  std::unique_ptr<RedisForm> form_;
  std::uint32_t in_flight_;
  std::deque<Flight> flying_;         // asked, in the order of their answers
  std::deque<Flight> second_halves_;  // of read-modify-writes whose first half is done
};

class RedisTarget : public Target {
 public:
  explicit RedisTarget(const TargetOptions& options)
      : options_(options),
        server_(options.redis_address.empty() ? start_server(options) : nullptr),
        address_(server_ ? server_->address() : address_of(options)),
        connection_(address_),
        form_(make_form()),
        version_(connection_.info("server", "redis_version")) {
    const RedisReply size = connection_.command({"DBSIZE"});
    if (size->integer != 0) {
      throw std::runtime_error(
          fmt::format("the Redis at {} holds {} keys; the benchmark wants an empty one, and "
                      "empties it at its end",
                      to_string(address_), size->integer));
    }
    ours_ = true;
  }

  ~RedisTarget() override {
    if (server_ || !ours_) return;
    try {
      connection_.command({"FLUSHDB"});
    } catch (const std::exception&) {
      // The server is gone, and so is its content.
    }
  }

  std::unique_ptr<TargetSession> open_session() override {
    return std::make_unique<RedisSession>(address_, make_form(), options_.in_flight);
  }
  void trim() override { connection_.command({"MEMORY", "PURGE"}); }
  Contents contents() override { return form_->contents(connection_); }

  std::optional<Resident> resident_elsewhere() override {
    if (server_) return resident(server_->process());
    // It updates its memory statistics ten times a second: waits for an item that never comes.
    connection_.command({"BLPOP", "espalier-bench-nothing", "0.25"});
    const std::string text = connection_.info("memory", "used_memory_rss");
    Resident result;
    std::from_chars(text.data(), text.data() + text.size(), result.bytes);
    return result;
  }

  [[nodiscard]] std::string settings() const override {
    return fmt::format("Redis {}{} at {}, {} in flight on each thread, {}", version_,
                       server_ ? ", nothing on disk," : "", to_string(address_), options_.in_flight,
                       options_.ordered ? "key and value as members of one sorted set, inserts do "
                                          "not look for the key"
                                        : "a string for each item");
  }
  [[nodiscard]] std::string pages() const override {
    return server_ ? "" : "pages that only the server can tell";
  }

 private:
  static std::unique_ptr<RedisServer> start_server(const TargetOptions& options) {
    return std::make_unique<RedisServer>(options.redis_tcp ? RedisDoor::tcp
                                                           : RedisDoor::unix_socket);
  }
  static RedisAddress address_of(const TargetOptions& options) {
    const auto address = parse_redis_address(options.redis_address);
    if (!address) throw std::runtime_error("no address of a Redis: " + options.redis_address);
    return *address;
  }

  [[nodiscard]] std::unique_ptr<RedisForm> make_form() const {
    if (!options_.ordered) return make_redis_strings();
    if (options_.fixed_key_bytes == 0) {
      throw std::runtime_error("target redis scans only keys that have one length");
    }
    return make_redis_sorted_set(options_.fixed_key_bytes);
  }

  TargetOptions options_;
  std::unique_ptr<RedisServer> server_;  // null: one that ran already
  RedisAddress address_;
  RedisConnection connection_;  // for all but the sessions
  std::unique_ptr<RedisForm> form_;
  std::string version_;
  bool ours_ = false;  // its content
};

}  // namespace

std::unique_ptr<Target> make_redis_target(const TargetOptions& options) {
  return std::make_unique<RedisTarget>(options);
}

}  // namespace espalier::bench
