// SPDX-License-Identifier: Apache-2.0
// For tests: an endpoint of a node that, while a test says so, has no room for pairs that write its
// memory.
//
// Thread: one at a time.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "fabric/endpoint.hpp"
#include "wire/ring_link.hpp"

namespace espalier::test {

class RefusingEndpoint final : public fabric::Endpoint {
 public:
  /// `refuses`: outlives it.
  RefusingEndpoint(std::unique_ptr<fabric::Endpoint> inner, const bool& refuses)
      : Endpoint(inner->properties(), inner->regions().shared_from_this()),
        inner_(std::move(inner)),
        refuses_(refuses) {}

  Result<std::unique_ptr<fabric::QueuePair>> connect(std::string_view address,
                                                     const fabric::QueuePairOptions& options,
                                                     std::span<const std::byte> data) override {
    return inner_->connect(address, options, data);
  }
  Result<void> listen(std::string_view address) override { return inner_->listen(address); }
  std::optional<fabric::ConnectRequest> next_request() override { return inner_->next_request(); }
  // A refusal travels through a pair that is made for that alone.
  Result<std::unique_ptr<fabric::QueuePair>> accept(const fabric::ConnectRequest& request,
                                                    const fabric::QueuePairOptions& options,
                                                    std::span<const std::byte> data) override {
    wire::LinkHello hello{};
    wire::LinkWelcome welcome{};
    if (request.data.size() >= sizeof hello && data.size() >= sizeof welcome) {
      std::memcpy(&hello, request.data.data(), sizeof hello);
      std::memcpy(&welcome, data.data(), sizeof welcome);
      const bool writes = hello.way == static_cast<std::uint8_t>(wire::LinkWay::writes);
      if (refuses_ && writes && welcome.code == 0) return fail(Code::out_of_memory);
    }
    return inner_->accept(request, options, data);
  }
  void reject(const fabric::ConnectRequest& request, std::span<const std::byte> data) override {
    inner_->reject(request, data);
  }
  void progress() override { inner_->progress(); }
  void flush() override { inner_->flush(); }
  void wait(std::uint64_t timeout_ns) override { inner_->wait(timeout_ns); }
  void wake() override { inner_->wake(); }

 private:
  const std::unique_ptr<fabric::Endpoint> inner_;
  const bool& refuses_;
};

}  // namespace espalier::test
