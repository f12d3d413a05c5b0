// SPDX-License-Identifier: Apache-2.0
#include "bench/table_data.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/cpu_clock.hpp"
#include "base/random.hpp"
#include "bench/huge_memory.hpp"
#include "bench/map_session.hpp"
#include "bench/mix.hpp"
#include "kinds/table/client/sealed_rows.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/table_object.hpp"
#include "regex/regex_cache.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

table::Schema schema_of(const TableSpec& spec) {
  std::string text;
  if (spec.kind == TableKind::texts) text = fmt::format("t char({}) not null", spec.row_bytes);
  for (std::size_t i = 0; spec.kind != TableKind::texts && i < spec.row_bytes / kWordBytes; ++i) {
    text += fmt::format("{}c{} i64 not null", i == 0 ? "" : ", ", i);
  }
  auto schema = table::Schema::parse(text);
  if (!schema) throw std::runtime_error("no schema of rows of this size");
  return std::move(*schema);
}

void fill_row(base::Random& random, std::byte* row) {
  std::uint64_t words[kKeysColumn + std::size(kGroupCounts)] = {random.below(1000),
                                                                random.below(1000)};
  for (std::size_t i = 0; i < std::size(kGroupCounts); ++i) {
    words[kKeysColumn + i] = random.below(kGroupCounts[i]);
  }
  std::memcpy(row, words, sizeof words);
}

/// Letters and digits; in half of the texts each hit stands somewhere in a quarter.
void fill_text(base::Random& random, std::byte* row) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  for (std::uint32_t i = 0; i < kTextBytes; ++i) {
    row[i] = static_cast<std::byte>(kLetters[static_cast<std::size_t>(row[i]) % kLetters.size()]);
  }
  constexpr std::size_t kPart = kTextBytes / std::size(kPatterns);
  const std::size_t first = random.below(std::size(kPatterns));
  for (std::size_t i = 0; i < std::size(kPatterns); ++i) {
    if (random.below(2) == 0) continue;
    const std::string_view hit = kPatterns[(first + i) % std::size(kPatterns)].hit;
    const std::size_t at = kPart * i + random.below(kPart - hit.size());
    std::memcpy(row + at, hit.data(), hit.size());
  }
}

std::uint64_t sum_of(const std::byte* at, std::size_t bytes) {
  std::array<std::uint64_t, 8> sums{};
  for (std::size_t i = 0; i + sizeof sums <= bytes; i += sizeof sums) {
    std::array<std::uint64_t, 8> words;
    std::memcpy(words.data(), at + i, sizeof words);
    for (std::size_t k = 0; k < words.size(); ++k) sums[k] += words[k];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) std::uint64_t sum_of_avx512(const std::byte* at,
                                                               std::size_t bytes) {
  __m512i sums[4] = {};
  std::size_t i = 0;
  for (; i + 256 <= bytes; i += 256) {
    for (std::size_t k = 0; k < 4; ++k) {
      sums[k] = _mm512_add_epi64(sums[k], _mm512_loadu_si512(at + i + 64 * k));
    }
  }
  const __m512i all =
      _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
  std::array<std::uint64_t, 8> lanes;
  _mm512_storeu_si512(lanes.data(), all);
  return std::accumulate(lanes.begin(), lanes.end(), sum_of(at + i, bytes - i));
}
#endif

template <class Use>
PassTime pass_over(const TableData& data, Use&& use) {
  const table::TableSnapshot snapshot(data.table());
  std::uint64_t checksum = 0;
  const PassWatch watch;
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const auto span = value_or_throw(snapshot.page(page), "cannot read the table");
    checksum += use(span.rows, span.bytes());
  }
  PassTime time = watch.elapsed();
  // Uses the sum, so that it is computed.
  time.seconds += checksum == 1 ? 1e-9 : 0;
  return time;
}

}  // namespace

TableData::TableData(const TableSpec& spec)
    : spec_(spec),
      region_(value_or_throw(memory::Region::reserve({.bytes_max = spec.bytes + spec.bytes / 8 +
                                                                   (std::uint64_t{64} << 20)}),
                             "no memory for the table")),
      pool_(region_) {
  table_ = value_or_throw(table::create_table(catalog_, pool_, "t", schema_of(spec),
                                              {.encrypted = spec.kind == TableKind::encrypted}),
                          "cannot make a table");
  base::Random random(spec.seed);
  std::optional<table::CtrCipher> cipher = new_cipher();
  const std::uint64_t count = spec.bytes / spec.row_bytes;
  const std::uint64_t at_once = std::clamp<std::uint64_t>(count, 1, 4096);
  std::vector<std::byte> rows(at_once * spec.row_bytes);
  for (std::uint64_t at = 0; at < count; at += at_once) {
    random.fill(rows);
    for (std::uint64_t i = 0; i < at_once; ++i) {
      std::byte* const row = rows.data() + i * spec.row_bytes;
      spec.kind == TableKind::texts ? fill_text(random, row) : fill_row(random, row);
    }
    append(rows, cipher);
  }
}

std::optional<table::CtrCipher> TableData::new_cipher() const {
  if (!table_->encrypted()) return std::nullopt;
  return value_or_throw(table::CtrCipher::derived(key(), table_->salt(), table::kTableKeyInfo),
                        "cannot encrypt");
}

void TableData::append(std::span<std::byte> rows, std::optional<table::CtrCipher>& cipher) {
  const auto append_or_throw = [](const auto& appended) {
    if (!appended) throw std::runtime_error("cannot append rows to the table");
  };
  if (!cipher) return append_or_throw(table_->append(rows));
  const std::size_t row_bytes = table_->schema().row_bytes();
  const auto reserved = value_or_throw(
      table_->reserve_slots(rows.size() / row_bytes, base::monotonic_ns()), "cannot append");
  const std::string_view slots(reinterpret_cast<const char*>(reserved.slots.data()),
                               reserved.slots.size() * sizeof(wire::ReservedSlots));
  if (!client::seal_rows(rows, row_bytes, slots, *cipher)) {
    throw std::runtime_error("slots for other rows");
  }
  append_or_throw(table_->append_reserved(reserved.number, rows));
}

std::shared_ptr<const TableData> TableData::kept_;

std::shared_ptr<const TableData> TableData::of(const TableSpec& spec) {
  if (!kept_ || kept_->spec() != spec) {
    kept_.reset();
    kept_ = std::make_shared<const TableData>(spec);
  }
  return kept_;
}

void TableData::forget() { kept_.reset(); }

std::vector<std::byte> message_of(const TableQuery& query, bool plain) {
  table::PipelineBuilder builder;
  if (query.kind == TableKind::encrypted && !plain) builder.decrypt();
  query.build(builder);
  auto message = builder.finish();
  if (!message) throw std::runtime_error("a query of the benchmark: " + message.error().message());
  return std::move(*message);
}

table::Pipeline pipeline_of(std::span<const std::byte> message, const table::Schema& schema) {
  static regex::RegexCache regexes;
  auto checked = table::check_pipeline(message, schema);
  if (!checked) throw std::runtime_error(checked.error().message());
  if (const auto compiled = table::compile_regexes(*checked, regexes); !compiled) {
    throw std::runtime_error(compiled.error().message());
  }
  return std::move(*checked);
}

std::uint64_t hash_of_rows(std::span<const std::byte> rows, std::size_t row_bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + row_bytes <= rows.size(); at += row_bytes) {
    std::uint64_t hash = 0;
    for (std::size_t word = 0; word < row_bytes; word += kWordBytes) {
      std::uint64_t value = 0;
      std::memcpy(&value, rows.data() + at + word, kWordBytes);
      hash = (hash ^ value) * kGolden;
    }
    sum += base::mix64(hash);
  }
  return sum;
}

PassWatch::PassWatch() : cpu_ns_(base::thread_cpu_ns()) {}

PassTime PassWatch::elapsed() const {
  const auto seconds = [](std::uint64_t ns) {
    return static_cast<double>(std::max<std::uint64_t>(ns, 1)) * 1e-9;
  };
  return {seconds(watch_.elapsed_ns()), seconds(base::thread_cpu_ns() - cpu_ns_)};
}

PassTime read_pass(const TableData& data) {
#if defined(__x86_64__)
  if (base::isa() == base::Isa::avx512) return pass_over(data, sum_of_avx512);
#endif
  return pass_over(data, sum_of);
}

PassTime copy_pass(const TableData& data) {
  // As large as a copied table, and touched in advance.
  static HugeBuffer to;
  if (to.bytes() < data.bytes()) {
    to = HugeBuffer(data.bytes());
    std::memset(to.data(), 1, to.bytes());
  }
  std::size_t used = 0;
  return pass_over(data, [&](const std::byte* at, std::size_t bytes) {
    std::memcpy(to.data() + used, at, bytes);
    used += bytes;
    return static_cast<std::uint64_t>(to.data()[used - 1]);
  });
}

}  // namespace espalier::bench
