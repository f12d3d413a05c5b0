// SPDX-License-Identifier: Apache-2.0
// Requests to an etcd by its JSON gateway. A leader that was stopped keeps its connections open, so
// each request has a deadline, a connection of its own, and then goes to the next endpoint. Where
// etcd asks who comes, its token is fetched by the password, and again once it is not taken any
// more.
//
// Thread: one at a time; waits.
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
  /// One request to one endpoint. Where it goes by TLS the handshake's signatures are in it.
  static constexpr long kRequestMs = 500;

  /// `endpoints`: each HOST:PORT, of one cluster.
  EtcdGateway(std::vector<std::string> endpoints, EtcdAccess access)
      : endpoints_(std::move(endpoints)), access_(std::move(access)) {}

  /// What the first endpoint that answers says. Errors: a sentence; it may be done then, or not.
  [[nodiscard]] std::expected<std::string, std::string> post(std::string_view path,
                                                             const std::string& body);

 private:
  /// Why there is no answer.
  struct Failure {
    std::string words;
    long status = 0;  ///< of HTTP; 0: nothing answered
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
