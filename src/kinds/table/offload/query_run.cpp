// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/query_run.hpp"

#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "engine/payload_reader.hpp"
#include "kinds/table/ctr_cipher.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/snapshot_source.hpp"
#include "kinds/table/staged_run.hpp"

namespace espalier::offload {

struct QueryRun::Execution {
  explicit Execution(std::shared_ptr<const table::Table> table) : source(std::move(table)) {}

  table::SnapshotSource source;
  std::optional<table::CtrCipher> table_cipher;
  std::optional<table::CtrCipher> result_cipher;
  std::optional<table::StagedRun> run;
};

QueryRun::QueryRun(std::shared_ptr<const table::Table> table, std::string_view message,
                   QueryLimits& limits, PrincipalAccount& account, table::RegexCompiler& regexes,
                   std::uint64_t seed, std::optional<SecretKeys> keys)
    : execution_(std::make_unique<Execution>(std::move(table))),
      message_(message),
      limits_(limits),
      account_(account),
      regexes_(regexes),
      seed_(seed),
      keys_(std::move(keys)) {}

QueryRun::~QueryRun() { limits_.give_group_bytes(account_, group_bytes_); }

std::span<const std::byte> QueryRun::staged() const {
  return execution_->run ? execution_->run->rows() : std::span<const std::byte>();
}

std::vector<std::byte>& QueryRun::stage() { return execution_->run->stage(); }

std::size_t QueryRun::stage_bytes() const { return execution_->run->stage_bytes(); }

bool QueryRun::only_stores() const {
  return execution_->run->only_stores() && !execution_->result_cipher;
}

void QueryRun::clear_stage() {
  if (execution_->run) execution_->run->clear();
  sealed_bytes_ = 0;
}

void QueryRun::end_with(Error error, std::string words) {
  ended_ = true;
  failure_ = Failure{error, std::move(words)};
}

// Checking and compiling take a time by the length of the message, so a helper does them too.
bool QueryRun::begin() {
  auto checked = table::check_pipeline(bytes_of_text(message_),
                                       execution_->source.snapshot().table().schema());
  if (!checked) {
    end_with({Code::invalid_argument, 0, 0}, checked.error().message());
    return false;
  }
  if (auto compiled = table::compile_regexes(*checked, regexes_); !compiled) {
    end_with({Code::invalid_argument, 0, 0}, compiled.error().message());
    return false;
  }
  if (!begin_ciphers(*checked)) return false;
  table::RunOptions options;
  options.seed = seed_;
  if (execution_->table_cipher) options.decrypt = &*execution_->table_cipher;
  options.group_bytes = table::GroupTable::kBytesMin;
  if (checked->grouped || checked->distinct) {
    group_bytes_ = limits_.take_group_bytes(account_, table::GroupTable::kBytesMin);
    options.group_bytes = group_bytes_;
  }
  execution_->run.emplace(std::move(*checked), execution_->source, options);
  return true;
}

bool QueryRun::begin_ciphers(const table::Pipeline& pipeline) {
  const auto refuse = [this](const char* words) {
    keys_.reset();
    end_with({Code::invalid_argument, 0, 0}, words);
    return false;
  };
  const table::Table& of = execution_->source.snapshot().table();
  const std::uint32_t flags = keys_ ? (*keys_)->flags : 0;
  if (of.encrypted() && !pipeline.decrypt) {
    return refuse("the table is encrypted: its pipelines begin with decrypt, and need its key");
  }
  if (!of.encrypted() && pipeline.decrypt) {
    return refuse("operator 0 (decrypt): the table is not encrypted");
  }
  const std::uint32_t wanted =
      (pipeline.decrypt ? wire::kTableKey : 0) | (pipeline.encrypt ? wire::kResultKey : 0);
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
  if (pipeline.decrypt) {
    made = make(execution_->table_cipher, (*keys_)->table_key, of.salt(), table::kTableKeyInfo);
  }
  if (made && pipeline.encrypt) {
    table::SaltBytes salt;
    std::memcpy(salt.data(), (*keys_)->result_salt, salt.size());
    made = make(execution_->result_cipher, (*keys_)->result_key, salt, table::kResultKeyInfo);
  }
  keys_.reset();
  return made;
}

/// Encrypts what came into the stage: the result is one page of a cipher, chunk behind chunk.
void QueryRun::seal_stage() {
  if (!execution_->result_cipher) return;
  table::StagedRun& run = *execution_->run;
  const std::span<std::byte> rows = run.rows_behind(sealed_bytes_);
  execution_->result_cipher->apply(0, run.bytes_taken() + sealed_bytes_, rows.data(), rows.data(),
                                   rows.size());
  sealed_bytes_ += rows.size();
}

void QueryRun::write_into(std::vector<ResultRoom> rooms) {
  rooms_ = std::move(rooms);
  room_ = 0;
  execution_->run->write_into(rooms_.front().memory);
}

/// What is in the present room stays there, and rows go into the next one. False: there is none.
bool QueryRun::next_room() {
  table::StagedRun& run = *execution_->run;
  if (const std::size_t bytes = run.rows().size(); bytes != 0) {
    filled_.push_back({rooms_[room_], bytes});
    run.clear();
  }
  if (++room_ < rooms_.size()) {
    run.write_into(rooms_[room_].memory);
    return true;
  }
  rooms_.clear();
  run.write_into({});
  return false;
}

JobStep QueryRun::step(StepContext& context) {
  const base::Stopwatch watch;
  if (!execution_->run && !begin()) return JobStep::done;
  table::StagedRun& run = *execution_->run;
  JobStep says = JobStep::again;
  while (says == JobStep::again) {
    if (cancelled()) {
      ended_ = true;
      says = JobStep::done;
      break;
    }
    switch (run.step(run.step_rows())) {
      case table::RunState::running: break;
      case table::RunState::stalled:
        if (rooms_.empty() || !next_room()) says = JobStep::done;
        break;
      case table::RunState::done:
        ended_ = true;
        if (!rooms_.empty()) next_room();
        says = JobStep::done;
        break;
      case table::RunState::failed:
        end_with(table::error_of(run.error()), run.error().message());
        says = JobStep::done;
        break;
    }
    if (context.should_return(run.stepped_ns())) break;
  }
  seal_stage();
  busy_ns_ += watch.elapsed_ns();
  return says;
}

wire::QueryNumbers QueryRun::numbers() const {
  wire::QueryNumbers numbers{};
  if (execution_->run) numbers = execution_->run->numbers();
  numbers.busy_ns = busy_ns_;
  return numbers;
}

}  // namespace espalier::offload
