// SPDX-License-Identifier: Apache-2.0
// For tests: `espalier fabric serve`, or another command that runs until it is stopped, on a thread
// of its own, on files in memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {

/// A command that serves until this ends, or stop().
class Serving {
 public:
  explicit Serving(std::vector<std::string> arguments, std::string content = "",
                   const std::vector<std::string>& command = {"fabric", "serve"}) {
    tool_.has_fabric = true;
    tool_.files.contents["content"] = std::move(content);
    tool_.notice_stop = [this] { return std::make_unique<Stop>(*this); };
    arguments.insert(arguments.begin(), command.begin(), command.end());
    thread_ = std::thread([this, arguments = std::move(arguments)] {
      exit_code_ = tool_.run(arguments);
      publish("");  // it has failed
    });
    said_ = said_future_.get();
  }
  ~Serving() { stop(); }

  /// What it said when it began, and with which address.
  [[nodiscard]] const std::string& said() const { return said_; }
  [[nodiscard]] std::string address() const {
    const std::string begin = "listening at ";
    return said_.substr(begin.size(), said_.find('\n') - begin.size());
  }
  /// Returns its exit code. Thread: any, one at a time.
  int stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    return exit_code_;
  }
  /// Requires: stop().
  [[nodiscard]] const Tool& tool() const { return tool_; }
  [[nodiscard]] std::optional<std::uint64_t> waited_at_most_ns() const { return at_most_ns_; }

 private:
  class Stop final : public StopRequest {
   public:
    explicit Stop(Serving& serving) : serving_(serving) {}
    std::string wait(std::optional<std::uint64_t> at_most_ns) override {
      serving_.at_most_ns_ = at_most_ns;
      serving_.publish(serving_.tool_.out());
      std::unique_lock lock(serving_.mutex_);
      serving_.changed_.wait(lock, [this] { return serving_.stopped_; });
      return at_most_ns ? "" : "SIGTERM";
    }

   private:
    Serving& serving_;
  };
  void publish(const std::string& said) {
    if (!published_) said_promise_.set_value(said);
    published_ = true;
  }

  Tool tool_;
  std::promise<std::string> said_promise_;
  std::future<std::string> said_future_ = said_promise_.get_future();
  bool published_ = false;  // of the thread
  int exit_code_ = -1;
  std::optional<std::uint64_t> at_most_ns_;
  std::string said_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace espalier::tools
