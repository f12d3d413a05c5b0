// SPDX-License-Identifier: Apache-2.0
#include "offload/query_run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.hpp"

namespace espalier::offload {
namespace {

// Some tens of microseconds: groups of many keys are cache misses each.
constexpr std::uint32_t kRowsAtOnce = 4096;
constexpr std::uint32_t kRowsToGroupAtOnce = 512;
// What a search costs is the pattern's doing: rows are taken as many as were done in this time.
constexpr std::uint64_t kSearchNs = 50'000;

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::span<std::byte> QueryRun::Stage::room() {
  return std::span(run_.stage_).subspan(run_.staged_bytes_);
}

void QueryRun::Stage::commit(std::size_t, std::size_t bytes) { run_.staged_bytes_ += bytes; }

void QueryRun::clear_stage() {
  bytes_sent_ += staged_bytes_;
  staged_bytes_ = 0;
  sealed_bytes_ = 0;
}

void QueryRun::end_with(Error error, std::string words) {
  ended_ = true;
  failure_ = Failure{error, std::move(words)};
}

// Checking and compiling take a time by the length of the message, so a helper does them too.
bool QueryRun::begin() {
  auto checked =
      table::check_pipeline(bytes_of_text(message_), source_.snapshot().table().schema());
  if (!checked) {
    end_with({Code::invalid_argument, 0, 0}, checked.error().message());
    return false;
  }
  if (auto compiled = table::compile_regexes(*checked, regexes_); !compiled) {
    end_with({Code::invalid_argument, 0, 0}, compiled.error().message());
    return false;
  }
  pipeline_.emplace(std::move(*checked));
  if (!begin_ciphers()) return false;
  program_.emplace(*pipeline_);
  stage_.resize(std::max<std::size_t>(kStageBytes, pipeline_->result.row_bytes()));
  table::RunOptions options;
  options.seed = seed_;
  if (table_cipher_) options.decrypt = &*table_cipher_;
  options.group_bytes = table::GroupTable::kBytesMin;
  if (pipeline_->grouped || pipeline_->distinct) {
    group_bytes_ = limits_.take_group_bytes(table::GroupTable::kBytesMin);
    options.group_bytes = group_bytes_;
  }
  run_.emplace(*program_, source_, sink_, options);
  return true;
}

bool QueryRun::begin_ciphers() {
  const auto refuse = [this](const char* words) {
    keys_.reset();
    end_with({Code::invalid_argument, 0, 0}, words);
    return false;
  };
  const table::Table& of = source_.snapshot().table();
  const std::uint32_t flags = keys_ ? (*keys_)->flags : 0;
  if (of.encrypted() && !pipeline_->decrypt) {
    return refuse("the table is encrypted: its pipelines begin with decrypt, and need its key");
  }
  if (!of.encrypted() && pipeline_->decrypt) {
    return refuse("operator 0 (decrypt): the table is not encrypted");
  }
  const std::uint32_t wanted =
      (pipeline_->decrypt ? wire::kTableKey : 0) | (pipeline_->encrypt ? wire::kResultKey : 0);
  if (flags != wanted) return refuse("the run's keys are not those that its pipeline needs");
  const auto make = [&](std::optional<table::CtrCipher>& cipher, const std::uint8_t(&key)[16],
                        const table::SaltBytes& salt, std::string_view info) {
    auto made = table::CtrCipher::derived(
        std::span<const std::byte, table::kKeyBytes>(std::as_bytes(std::span(key))), salt, info);
    if (!made) {
      end_with(made.error(), made.error().code == Code::unsupported
                                 ? "this node has no libcrypto, which encryption needs"
                                 : "this node may lock no more memory for keys (RLIMIT_MEMLOCK)");
      return false;
    }
    cipher.emplace(*std::move(made));
    return true;
  };
  bool made = true;
  if (pipeline_->decrypt) {
    made = make(table_cipher_, (*keys_)->table_key, of.salt(), table::kTableKeyInfo);
  }
  if (made && pipeline_->encrypt) {
    table::SaltBytes salt;
    std::memcpy(salt.data(), (*keys_)->result_salt, salt.size());
    made = make(result_cipher_, (*keys_)->result_key, salt, table::kResultKeyInfo);
  }
  keys_.reset();
  return made;
}

/// Encrypts what came into the stage: the result is one page of a cipher, chunk behind chunk.
void QueryRun::seal_stage() {
  if (!result_cipher_) return;
  std::byte* const at = stage_.data() + sealed_bytes_;
  result_cipher_->apply(0, bytes_sent_ + sealed_bytes_, at, at, staged_bytes_ - sealed_bytes_);
  sealed_bytes_ = staged_bytes_;
}

std::uint32_t QueryRun::rows_at_once() const {
  if (program_->has_regexes()) return searched_rows_;
  return pipeline_->grouped || pipeline_->distinct ? kRowsToGroupAtOnce : kRowsAtOnce;
}

void QueryRun::measure(std::uint64_t rows, std::uint64_t ns) {
  if (!program_->has_regexes() || rows == 0) return;
  const std::uint64_t wanted = rows * kSearchNs / std::max<std::uint64_t>(ns, 1);
  // At most twice as many as the last time: texts behind these may be longer.
  searched_rows_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      wanted, 1, std::min<std::uint64_t>(2 * std::uint64_t{searched_rows_}, kRowsToGroupAtOnce)));
}

JobStep QueryRun::step(StepContext& context) {
  const base::Stopwatch watch;
  if (!run_ && !begin()) return JobStep::done;
  JobStep says = JobStep::again;
  while (says == JobStep::again) {
    if (cancelled()) {
      ended_ = true;
      says = JobStep::done;
      break;
    }
    const std::uint64_t rows_before = run_->numbers().rows_read;
    const base::Stopwatch of_rows;
    const table::RunState state = run_->step(rows_at_once());
    measure(run_->numbers().rows_read - rows_before, of_rows.elapsed_ns());
    switch (state) {
      case table::RunState::running: break;
      case table::RunState::stalled: says = JobStep::done; break;
      case table::RunState::done:
        ended_ = true;
        says = JobStep::done;
        break;
      case table::RunState::failed: {
        const table::RunError& error = run_->error();
        const bool of_source = error.source.code != Code::invalid;
        end_with(of_source ? error.source : Error{Code::invalid_argument, 0, 0}, error.message());
        says = JobStep::done;
        break;
      }
    }
    if (context.should_return()) break;
  }
  seal_stage();
  memory_bytes_ = std::max<std::uint64_t>(memory_bytes_, run_->memory_bytes());
  busy_ns_ += watch.elapsed_ns();
  return says;
}

wire::QueryNumbers QueryRun::numbers() const {
  wire::QueryNumbers numbers{};
  if (run_) {
    const table::RunNumbers& of_run = run_->numbers();
    numbers.rows_read = of_run.rows_read;
    numbers.rows_passed = of_run.rows_passed;
    numbers.rows_sent = of_run.rows_sent;
    numbers.bytes_read = of_run.bytes_read;
    numbers.flushes = of_run.flushes;
  }
  numbers.bytes_sent = bytes_sent_;
  numbers.busy_ns = busy_ns_;
  numbers.memory_bytes = memory_bytes_;
  return numbers;
}

}  // namespace espalier::offload
