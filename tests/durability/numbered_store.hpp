// SPDX-License-Identifier: Apache-2.0
// For tests: the store of transaction_store.hpp, with clients whose transactions have numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/numbered_clients.hpp"
#include "tests/durability/transaction_store.hpp"

namespace espalier::test {

class NumberedStore : public TransactionStore {
 public:
  [[nodiscard]] store::NumberedClients& clients() {
    return core.parts.of<store::NumberedClients>();
  }
  std::uint64_t make(std::string_view principal = {}, bool kept = false) {
    return clients().make(principal, kept, core.catalog.redo()).value();
  }
  static store::RequestNumber number_of(store::RequestNumber number,
                                        const std::vector<NamedStep>& steps) {
    std::string all;
    for (const NamedStep& step : steps) {
      all += step.map + '/' + step.key + '=' + step.value + '#' +
             std::to_string(static_cast<int>(step.kind)) + ';';
    }
    number.request = std::hash<std::string>{}(all);
    return number;
  }
  /// Runs a transaction with an unknown number, without waiting.
  Result<store::Transacted> run(const store::RequestNumber& number,
                                const std::vector<NamedStep>& steps) {
    auto begun = clients().begin(number_of(number, steps), {});
    if (!begun) return std::unexpected(begun.error());
    EXPECT_TRUE(begun->turn);
    auto objects = objects_of(steps);
    std::string bytes;
    return store::transact(core, objects, {.answer = &bytes, .turn = &begun->turn});
  }
  /// The answer to a client: "whole VERSION BYTES", "done_alone VERSION", "failed STEP", or an
  /// error.
  std::string ask(const store::RequestNumber& number, const std::vector<NamedStep>& steps,
                  std::string_view principal = {}) {
    auto begun = clients().begin_waiting(number_of(number, steps), principal);
    if (!begun) return text_of(begun.error());
    if (begun->answer != nullptr) {
      EXPECT_TRUE(store::wait_for_release(*begun->answer, core.catalog.redo()));
      return text_of(*begun->answer);
    }
    auto objects = objects_of(steps);
    std::string bytes;
    const auto done = store::transact(core, objects, {.answer = &bytes, .turn = &begun->turn});
    if (!done) return text_of(done.error());
    EXPECT_TRUE(store::wait_for_release(clock(), done->wait_for));
    if (done->failed_step) return "failed " + std::to_string(*done->failed_step);
    return "whole " + std::to_string(done->version) + " " + bytes;
  }

 private:
  static std::string text_of(const Error& error) {
    return std::string(name(error.code)) + " " + std::to_string(error.detail);
  }
  static std::string text_of(const store::KeptAnswer& answer) {
    const std::string version = std::to_string(answer.version);
    switch (answer.fact) {
      case catalog::ClientFact::done: return "whole " + version + " " + answer.bytes;
      case catalog::ClientFact::done_alone: return "done_alone " + version;
      case catalog::ClientFact::condition: return "failed " + version;
      default: return text_of(answer.error);
    }
  }
};

}  // namespace espalier::test
