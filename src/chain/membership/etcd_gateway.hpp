// SPDX-License-Identifier: Apache-2.0
// Requests to etcd over its JSON gateway. A stopped leader keeps its connections open, so each
// request has a deadline and a connection of its own, and then goes to the next endpoint. If etcd
// requires authentication, the gateway fetches a token by the password, and again once that is
// refused.
//
// Thread: one at a time; blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chain/membership/etcd_access.hpp"

namespace espalier::chain {

/// Why etcd gives no answer of use.
enum class EtcdFault : std::uint8_t {
  unavailable = 1,  ///< no endpoint answers in time, or etcd cannot serve now: ask again later
  refused = 2,      ///< user, password, or a certificate: etcd's or this client's
  strange = 3,      ///< what answers is no etcd, or the key holds no chain
  no_library = 4,   ///< libcurl is missing
};
struct EtcdError {
  EtcdFault fault = EtcdFault::unavailable;
  std::string words;  ///< a sentence for people
};

class EtcdGateway {
 public:
  /// Deadline of one request to one endpoint. With TLS it includes the handshake.
  static constexpr std::uint64_t kRequestMs = 500;
  static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

  /// `endpoints`: each HOST:PORT, of one cluster.
  EtcdGateway(std::vector<std::string> endpoints, EtcdAccess access)
      : endpoints_(std::move(endpoints)), access_(std::move(access)) {}

  /// The answer of the first endpoint that has one before `until_ns` of base::monotonic_ns().
  /// Errors: that of the first endpoint that is unavailable, else that of the last one; the request
  /// may have been executed.
  [[nodiscard]] std::expected<std::string, EtcdError> post(std::string_view path,
                                                           const std::string& body,
                                                           std::uint64_t until_ns = kNoEnd);

 private:
  struct Request {
    std::string_view path;
    const std::string& body;
    std::uint64_t until_ns;
  };
  /// The reason of a failure.
  struct Failure {
    EtcdFault fault = EtcdFault::unavailable;
    std::string words;
    long status = 0;  ///< of HTTP; 0: no answer
  };
  [[nodiscard]] std::expected<std::string, Failure> post_to(const std::string& endpoint,
                                                            const Request& request) const;
  [[nodiscard]] std::expected<std::string, Failure> ask(const std::string& endpoint,
                                                        const Request& request);
  [[nodiscard]] std::expected<void, Failure> fetch_token(const std::string& endpoint,
                                                         std::uint64_t until_ns);

  const std::vector<std::string> endpoints_;
  const EtcdAccess access_;
  std::size_t first_ = 0;  // the endpoint that answered last
  std::string token_;
};

}  // namespace espalier::chain
