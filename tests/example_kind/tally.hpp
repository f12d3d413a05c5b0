// SPDX-License-Identifier: Apache-2.0
// A program's definitions that use the installed interface alone: some calls, and a kind, tallies,
// which count words.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/offload.hpp"

namespace espalier::example {

// --- calls of no object --------------------------------------------------------------------------

inline constexpr OffloadRow kEchoSum{.number = 140,
                                     .name = "echo_sum",
                                     .summary = "answers the sum of numbers of 8 bytes",
                                     .right = OffloadRight::read,
                                     .idempotent = true,
                                     .request_bytes_max = 8192,
                                     .reply_bytes_max = 8,
                                     .runs_on = RunsOn::worker};
/// The same on a helper.
inline constexpr OffloadRow kHelperSum{.number = 141,
                                       .name = "helper_sum",
                                       .right = OffloadRight::read,
                                       .request_bytes_max = 8192,
                                       .reply_bytes_max = 8};
/// One byte selects how it fails: see Mishap.
inline constexpr OffloadRow kMishap{.number = 142,
                                    .name = "mishap",
                                    .right = OffloadRight::read,
                                    .request_bytes_min = 1,
                                    .request_bytes_max = 1,
                                    .reply_bytes_max = 4};
/// The same on the worker.
inline constexpr OffloadRow kWorkerMishap{.number = 143,
                                          .name = "worker_mishap",
                                          .right = OffloadRight::read,
                                          .request_bytes_min = 1,
                                          .request_bytes_max = 1,
                                          .reply_bytes_max = 4,
                                          .runs_on = RunsOn::worker};
enum class Mishap : char { runtime_error, number, bad_alloc, words, no_code, long_reply, none };

/// Waits, by yielding, until `signal` was called.
inline constexpr OffloadRow kAwaitSignal{
    .number = 144, .name = "await_signal", .right = OffloadRight::read, .reply_bytes_max = 8};
inline constexpr OffloadRow kWorkerAwaitSignal{.number = 145,
                                               .name = "worker_await_signal",
                                               .right = OffloadRight::read,
                                               .reply_bytes_max = 8,
                                               .runs_on = RunsOn::worker};
inline constexpr OffloadRow kSignal{
    .number = 146, .name = "signal", .right = OffloadRight::read, .runs_on = RunsOn::worker};
/// Takes two texts, a map's name and a key: adds to the key's counter in the node's own map.
inline constexpr OffloadRow kCountIn{.number = 147,
                                     .name = "count_in",
                                     .right = OffloadRight::write,
                                     .request_bytes_max = 1024,
                                     .reply_bytes_max = 8};
/// Takes a name: takes a number of the store's own sequencer of that name.
inline constexpr OffloadRow kTakeNumber{.number = 148,
                                        .name = "take_number",
                                        .right = OffloadRight::write,
                                        .request_bytes_max = 255,
                                        .reply_bytes_max = 8};
/// Answers the caller's name.
inline constexpr OffloadRow kWho{
    .number = 149, .name = "who", .right = OffloadRight::read, .reply_bytes_max = 300};
inline constexpr OffloadRow kNotAtDevices{.number = 150,
                                          .name = "not_at_devices",
                                          .right = OffloadRight::read,
                                          .at_device = OffloadAtDevice::refused};

/// Takes two texts, a tally's name and a word: counts it there, by a call of the store's own.
inline constexpr OffloadRow kTallyNamed{.number = 151,
                                        .name = "tally_named",
                                        .right = OffloadRight::write,
                                        .request_bytes_max = 1024,
                                        .reply_bytes_max = 8};

// --- tallies -------------------------------------------------------------------------------------

inline constexpr KindRow kTally{.number = ObjectKind{200},
                                .name = "tally",
                                .create_number = 160,
                                .open_number = 161,
                                .form_bytes_max = 16,
                                .memory_percent = 1};
/// Takes a word: counts it; answers its count.
inline constexpr OffloadRow kTallyAdd{.number = 162,
                                      .name = "tally_add",
                                      .right = OffloadRight::write,
                                      .kind = kTally.number,
                                      .request_bytes_min = 1,
                                      .request_bytes_max = 1 << 20,
                                      .reply_bytes_max = 8,
                                      .runs_on = RunsOn::worker};
/// Answers each word with its count.
inline constexpr OffloadRow kTallyAll{.number = 163,
                                      .name = "tally_all",
                                      .right = OffloadRight::read,
                                      .kind = kTally.number,
                                      .reply_bytes_max = 64 << 10};

class Tally final : public OwnObject {
 public:
  explicit Tally(const ObjectForm& form) : step_(form.form.size() + 1), counts_(form.memory) {}
  std::uint64_t add(std::string_view word);
  void write_all(BytesWriter& to) const;
  [[nodiscard]] std::uint64_t entries() const override;
  void add_samples(ObjectSamples& to) const override;

 private:
  const std::uint64_t step_;  // added each time
  mutable std::mutex mutex_;  // guards counts_
  std::pmr::map<std::pmr::string, std::uint64_t, std::less<>> counts_;
};

// --- the program ---------------------------------------------------------------------------------

/// State that the handlers share, and tests read.
struct TallyProgram {
  std::atomic<bool> signalled{false};
  std::atomic<int> waiting{0};
  std::mutex mutex;                 // guards `thrown`
  std::vector<std::string> thrown;  // the call, and what it threw

  /// Requires: this outlives the users of the result.
  [[nodiscard]] Offloads offloads();
};

}  // namespace espalier::example
