// SPDX-License-Identifier: Apache-2.0
// A server of HTTP in the place of an etcd, which answers each request with the bytes that a test
// gives, well formed or not.
//
// Thread: the test's, and one of its own, which calls the test's function.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace espalier::chain {

class FakeEtcd {
 public:
  struct Request {
    std::string head;  ///< the request line and the headers
    std::string body;
  };
  enum class Then : std::uint8_t {
    close,   ///< the connection ends behind the answer
    hold,    ///< it stays open, and nothing more comes
    repeat,  ///< the same bytes again and again, until the client is gone
  };
  struct Answer {
    std::string bytes;
    Then then = Then::close;
  };

  explicit FakeEtcd(std::function<Answer(const Request&)> answer);
  FakeEtcd(const FakeEtcd&) = delete;
  FakeEtcd& operator=(const FakeEtcd&) = delete;
  ~FakeEtcd();

  /// HOST:PORT.
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  /// Requests that came so far.
  [[nodiscard]] std::size_t requests() const { return requests_.load(); }

 private:
  void serve();
  /// Returns whether the connection stays open.
  bool serve_one(int connection);

  const std::function<Answer(const Request&)> answer_;
  int listener_;
  std::string endpoint_;
  std::atomic<std::size_t> requests_{0};
  std::atomic<bool> stopping_{false};
  std::vector<int> held_;  // of the thread
  std::thread thread_;
};

/// An answer of HTTP with this status and body.
[[nodiscard]] std::string http_answer(int status, std::string_view body);
/// The body by which etcd answers a range of one key; nothing: there is no such key.
[[nodiscard]] std::string range_body(const std::optional<std::string>& value);

}  // namespace espalier::chain
