// SPDX-License-Identifier: Apache-2.0
// One request of a program's own call, from its first step to its last, at a node or in a store.
//
// Thread: one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "espalier/offload.hpp"
#include "kinds/program/own_calls.hpp"
#include "wire/call_row.hpp"

namespace espalier::program {

/// Gives handlers access to the objects of the store that they run beside. Thread: any.
class StoreSource {
 public:
  virtual ~StoreSource() = default;
  /// Kept alive while it is held. Throws std::bad_alloc.
  [[nodiscard]] virtual std::shared_ptr<Store> store() const = 0;
};

/// The client of a request.
struct Caller {
  std::string name;
  wire::Right role = wire::Right::admin;
  std::string prefix{};  ///< of the names of objects to which the role applies; empty: all
};

class RunningCall {
 public:
  /// `own`, `offload` and `source` outlive it, and so does what the request points to.
  /// `object`: null for a call without one.
  RunningCall(const OwnCalls& own, const Offload& offload, std::string_view request,
              OwnCalls::Object object, Caller caller, const StoreSource& source)
      : own_(own),
        offload_(offload),
        request_(request),
        object_(std::move(object)),
        caller_(std::move(caller)),
        source_(source),
        context_(*this) {}
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  /// Does a step. Returns whether it was the last. Throws std::bad_alloc if there is no memory even
  /// for words.
  [[nodiscard]] bool step();
  [[nodiscard]] const OffloadRow& row() const { return offload_.row; }

  // After the last step:

  /// None: it has a reply.
  [[nodiscard]] const std::optional<TableError>& error() const { return error_; }
  [[nodiscard]] std::string& reply() { return reply_; }

 private:
  friend class espalier::OffloadContext;
  bool end(OffloadStep step);
  bool fail(TableError error);

  const OwnCalls& own_;
  const Offload& offload_;
  const std::string_view request_;
  const OwnCalls::Object object_;
  const Caller caller_;
  const StoreSource& source_;
  std::shared_ptr<Store> store_;
  OffloadContext context_;  // its state may use the store
  std::string reply_;
  std::optional<TableError> error_;
};

/// Whether a request has a length that its row allows.
[[nodiscard]] inline bool fits(const OffloadRow& row, std::string_view request) {
  return request.size() >= row.request_bytes_min && request.size() <= row.request_bytes_max;
}

}  // namespace espalier::program
