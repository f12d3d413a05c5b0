// SPDX-License-Identifier: Apache-2.0
// Passes the records of an audit log to the function that writes them, on a thread of its own: a
// slow log delays this thread, and no worker.
//
// Thread: start and end one at a time; only this thread calls `sink`.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "engine/audit_log.hpp"

namespace espalier::node {

using AuditSink = std::function<void(const offload::AuditRecord&)>;

class AuditThread {
 public:
  /// `log` outlives it. Errors: std::system_error.
  AuditThread(offload::AuditLog& log, AuditSink sink) : log_(log), sink_(std::move(sink)) {
    thread_ = std::thread([this] { run(); });
    log_.open();
  }
  /// Passes on the remaining records.
  ~AuditThread() {
    log_.stop();
    thread_.join();
  }
  AuditThread(const AuditThread&) = delete;
  AuditThread& operator=(const AuditThread&) = delete;

 private:
  void run() {
    for (bool more = true; more;) {
      more = log_.wait();
      while (const auto record = log_.take()) sink_(*record);
    }
  }

  offload::AuditLog& log_;
  const AuditSink sink_;
  std::thread thread_;
};

}  // namespace espalier::node
