// SPDX-License-Identifier: Apache-2.0
// What a core decrypts, by form and by the length of the pieces; and a selection over rows of 64
// bytes, plain and encrypted.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "kinds/table/batch_run.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/snapshot_source.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

void decrypt(benchmark::State& state, CtrCipher::Form form) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  CtrCipher cipher = CtrCipher::of_key(KeyBytes{}, form).value();
  std::vector<std::byte> text(std::size_t{2} << 20);
  for (auto _ : state) {
    for (std::size_t at = 0; at + bytes <= text.size(); at += bytes) {
      cipher.apply(1, at, text.data() + at, text.data() + at, bytes);
    }
    benchmark::DoNotOptimize(text.data());
  }
  state.SetLabel(cipher.uses_vaes() ? "VAES" : "EVP");
  state.SetBytesProcessed(
      static_cast<std::int64_t>(state.iterations() * text.size() / bytes * bytes));
}
void decrypt_best(benchmark::State& state) { decrypt(state, CtrCipher::Form::best); }
void decrypt_evp(benchmark::State& state) { decrypt(state, CtrCipher::Form::evp); }
BENCHMARK(decrypt_best)->Arg(64)->Arg(1024)->Arg(32768);
BENCHMARK(decrypt_evp)->Arg(64)->Arg(1024)->Arg(32768);

/// Room of 64 KiB that is always free.
class FreeSink final : public RowSink {
 public:
  std::span<std::byte> room() override { return block_; }
  void commit(std::size_t rows, std::size_t) override { rows_ += rows; }
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  std::vector<std::byte> block_ = std::vector<std::byte>(64 * 1024);
  std::size_t rows_ = 0;
};

/// select * from t where a < percent, a being below 100, over 256 MiB.
void select_rows(benchmark::State& state, bool encrypted) {
  constexpr std::uint64_t kRows = std::uint64_t{1} << 22;
  constexpr std::uint64_t kTogether = 1 << 14;
  TableStore store(std::uint64_t{600} << 20);
  const auto table = store.create(schema_of("a i64 not null, b i64 not null, c char(48) not null"),
                                  {.encrypted = encrypted});
  CtrCipher cipher = CtrCipher::derived(KeyBytes{}, table->salt(), kTableKeyInfo).value();
  base::Random random(1);
  std::vector<std::byte> rows(kTogether * 64);
  for (std::uint64_t done = 0; done < kRows; done += kTogether) {
    for (std::uint64_t i = 0; i < kTogether; ++i) {
      const std::uint64_t a = random.below(100);
      std::memset(rows.data() + i * 64, ' ', 64);
      std::memcpy(rows.data() + i * 64, &a, sizeof a);
    }
    if (!encrypted) {
      if (!table->append(rows)) return state.SkipWithError("no memory");
      continue;
    }
    const auto reserved = table->reserve_slots(kTogether, 0);
    if (!reserved) return state.SkipWithError("no memory");
    std::byte* at = rows.data();
    for (const wire::ReservedSlots& some : reserved->slots) {
      cipher.apply(some.cipher_page, sizeof(wire::RowPageHeader) + some.first_slot * 64, at, at,
                   some.slots * 64);
      at += some.slots * 64;
    }
    if (!table->append_reserved(reserved->number, rows)) return state.SkipWithError("no append");
  }
  PipelineBuilder builder;
  if (encrypted) builder.decrypt();
  builder.filter(builder.binary(wire::ExpressionKind::less, builder.column(0),
                                builder.constant(integer_constant(state.range(0)))));
  const BatchProgram program(*check_pipeline(*builder.finish(), table->schema()));
  for (auto _ : state) {
    SnapshotSource source(table);
    FreeSink sink;
    BatchRun run(program, source, sink, {.seed = 7, .decrypt = encrypted ? &cipher : nullptr});
    while (run.step(4096) == RunState::running) {
    }
    benchmark::DoNotOptimize(sink.rows());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kRows * 64));
}
void select_plain(benchmark::State& state) { select_rows(state, false); }
void select_encrypted(benchmark::State& state) { select_rows(state, true); }
BENCHMARK(select_plain)->Arg(25)->Arg(100)->Unit(benchmark::kMillisecond);
BENCHMARK(select_encrypted)->Arg(25)->Arg(100)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::table

BENCHMARK_MAIN();
