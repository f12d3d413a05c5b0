// SPDX-License-Identifier: Apache-2.0
// Requests to etcd over its JSON gateway. A stopped leader keeps its connections open, so each
// request has a deadline and a connection of its own, and then goes to the next endpoint. If etcd
// requires authentication, the gateway fetches a token by the password, and again once that is
// refused.
//
// Thread: one at a time; blocks.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chain/etcd_access.hpp"

namespace espalier::chain {

class EtcdGateway {
 public:
  /// Deadline of one request to one endpoint. With TLS it includes the handshake.
  static constexpr long kRequestMs = 500;

  /// `endpoints`: each HOST:PORT, of one cluster.
  EtcdGateway(std::vector<std::string> endpoints, EtcdAccess access)
      : endpoints_(std::move(endpoints)), access_(std::move(access)) {}

  /// The answer of the first endpoint that has one. Errors: a sentence; the request may have been
  /// executed.
  [[nodiscard]] std::expected<std::string, std::string> post(std::string_view path,
                                                             const std::string& body);

 private:
  /// The reason of a failure.
  struct Failure {
    std::string words;
    long status = 0;  ///< of HTTP; 0: no answer
  };
  [[nodiscard]] std::expected<std::string, Failure> post_to(const std::string& endpoint,
                                                            std::string_view path,
                                                            const std::string& body) const;
  [[nodiscard]] std::expected<std::string, Failure> ask(const std::string& endpoint,
                                                        std::string_view path,
                                                        const std::string& body);
  [[nodiscard]] std::expected<void, Failure> fetch_token(const std::string& endpoint);

  const std::vector<std::string> endpoints_;
  const EtcdAccess access_;
  std::size_t first_ = 0;  // the endpoint that answered last
  std::string token_;
};

}  // namespace espalier::chain
