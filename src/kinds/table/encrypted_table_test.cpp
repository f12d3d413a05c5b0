// SPDX-License-Identifier: Apache-2.0
// Encrypted tables: slots that are given once, and pipelines that decrypt.
#include <gtest/gtest.h>

#include <cstring>

#include "kinds/table/batch_run.hpp"
#include "kinds/table/explain.hpp"
#include "kinds/table/reference.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/snapshot_source.hpp"
#include "kinds/table/testing/encrypted_checks.hpp"
#include "kinds/table/testing/random_pipeline.hpp"

namespace espalier::table {
namespace {

TEST(EncryptedTable, GivesEachSlotOnce) {
  for (std::uint64_t seed = 1; seed < 3; ++seed) {
    EXPECT_EQ(difference_in_reservations(seed, 150), "") << "seed " << seed;
  }
}

TEST(EncryptedTable, ReservationsBelongToEncryptedTablesAlone) {
  TableStore store;
  const Schema schema = schema_of("a i64 not null");
  const auto plain = store.create(schema);
  EXPECT_EQ(plain->reserve_slots(1, 0).error().code, Code::unsupported);
  const auto table = store.create(schema, {.encrypted = true});
  const std::vector<std::byte> row(8);
  EXPECT_EQ(table->append(row).error().error.code, Code::unsupported);
  EXPECT_EQ(table->reserve_slots(0, 0).error().code, Code::invalid_argument);
  EXPECT_EQ(table->append_reserved(1, row).error().code, Code::not_found);
  const auto reservation = table->reserve_slots(1, 0);
  ASSERT_TRUE(reservation);
  table->set_dropped();
  EXPECT_EQ(table->append_reserved(reservation->number, row).error().code, Code::dropped);
  EXPECT_EQ(table->reserve_slots(1, 0).error().code, Code::dropped);
}

TEST(EncryptedTable, AReservationEndsWithItsReserver) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"), {.encrypted = true});
  auto session = std::make_shared<const Reserver>();
  const auto first = table->reserve_slots(3, 0, session);
  ASSERT_TRUE(first);
  EXPECT_EQ(table->reserve_slots(1, 0).error().code, Code::busy);
  session.reset();
  const auto next = table->reserve_slots(1, 0);
  ASSERT_TRUE(next);
  // The slots of the one that is gone stay dead.
  EXPECT_NE(next->slots.front().cipher_page, first->slots.front().cipher_page);
}

TEST(EncryptedTable, RefusedAppendsAreTold) {
  const Schema schema = schema_of("a i64 not null");
  EXPECT_EQ(describe({{Code::not_found, 0, 0}, 0, {}}, schema),
            "the reservation has ended, or is another session's: nothing was appended");
  EXPECT_EQ(describe({{Code::invalid_argument, 0, 0}, 0, {}}, schema),
            "the reservation was for another number of rows, and has ended: nothing was appended");
  EXPECT_EQ(describe({{Code::out_of_memory, 0, 0}, 0, {}}, schema), "");
}

TEST(EncryptedTable, ItsHeaderHasCipherAndSaltAndItsPagesNoPlainText) {
  TableStore store;
  const auto table = store.create(schema_of("a char(56) not null"), {.encrypted = true});
  const auto other = store.create(schema_of("a char(56) not null"), {.encrypted = true});
  EXPECT_NE(table->salt(), other->salt());
  wire::TableHeader header{};
  std::memcpy(&header, store.pool.at(table->header_offset()), sizeof header);
  EXPECT_EQ(header.cipher, static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr));
  EXPECT_EQ(std::memcmp(header.salt, table->salt().data(), sizeof header.salt), 0);
  std::memcpy(&header, store.pool.at(store.create(schema_of("a i64"))->header_offset()),
              sizeof header);
  EXPECT_EQ(header.cipher, 0u);
  CtrCipher cipher = CtrCipher::derived(KeyBytes{}, table->salt(), kTableKeyInfo).value();
  std::vector<std::byte> rows(56 * 100, std::byte{'x'});
  base::Random random(1);
  ASSERT_EQ(append_encrypted(random, *table, cipher, rows), "");
  const TableSnapshot snapshot(table);
  const RowSpan span = snapshot.page(0).value();
  const std::string_view text(reinterpret_cast<const char*>(span.rows), span.bytes());
  EXPECT_EQ(text.find("xxxx"), std::string_view::npos);
}

/// What a run gives, merged and as bytes, or its error.
struct Outcome {
  std::string error;
  std::vector<std::byte> rows;
};

Outcome run_encrypted(base::Random& random, const BatchProgram& program,
                      const std::shared_ptr<Table>& table, CtrCipher& cipher) {
  SnapshotSource source(table);
  MemorySink sink(program.pipeline().result.row_bytes() * (1 + random.below(500)));
  BatchRun run(program, source, sink,
               {.group_bytes = std::size_t{8} << 20, .seed = 1, .decrypt = &cipher});
  for (;;) {
    const RunState state = run.step(static_cast<std::uint32_t>(1 + random.below(600)));
    if (state == RunState::failed) return {run.error().message(), {}};
    if (state == RunState::done) break;
    if (state == RunState::stalled) sink.give_room();
  }
  ResultMerge merge(program.pipeline(), 2);
  const std::size_t taken = merge.take(sink.rows());
  const std::size_t row_bytes = program.pipeline().result.row_bytes();
  Outcome outcome;
  if (merge.is_streaming()) {
    const auto all = sink.rows().first(taken * row_bytes);
    outcome.rows.assign(all.begin(), all.end());
  }
  for (std::size_t i = 0; !merge.is_streaming() && i < merge.size(); ++i) {
    outcome.rows.insert(outcome.rows.end(), merge.row(i), merge.row(i) + row_bytes);
  }
  return outcome;
}

TEST(EncryptedTableRandom, PipelinesOverCipherTextAnswerAsTheReferenceOverPlainText) {
  base::Random random(5);
  int smart = 0;
  for (int round = 0; round < 12; ++round) {
    const Schema schema = random_small_schema(random);
    const MemoryRows rows = random_small_rows(random, schema, 1 + random.below(6000), 3);
    TableStore store;
    const auto table = store.create(schema, {.encrypted = true});
    KeyBytes key;
    random.fill(key);
    const auto form = random.chance(0.5) ? CtrCipher::Form::best : CtrCipher::Form::evp;
    CtrCipher writer = CtrCipher::derived(key, table->salt(), kTableKeyInfo, form).value();
    CtrCipher reader = CtrCipher::derived(key, table->salt(), kTableKeyInfo).value();
    ASSERT_EQ(
        append_encrypted(random, *table, writer, {rows.row(0), rows.size() * schema.row_bytes()}),
        "");
    for (int pipelines = 0; pipelines < 25; ++pipelines) {
      Pipeline pipeline = random_pipeline(random, schema);
      MemorySource source(rows);
      const auto expected = run_reference(pipeline, source);
      pipeline.decrypt = true;
      const BatchProgram program(pipeline);
      smart += program.is_smart();
      const Outcome found = run_encrypted(random, program, table, reader);
      ASSERT_EQ(found.error, expected ? "" : expected.error().message());
      if (expected) {
        ASSERT_TRUE(found.rows == expected->rows);
      }
    }
  }
  EXPECT_GT(smart, 50);
}

TEST(EncryptedTable, RowsLongerThanABatchAreDecrypted) {
  TableStore store(std::uint64_t{256} << 20);
  std::string text = "n i64 not null";
  for (int i = 0; i < 31; ++i) text += ", t" + std::to_string(i) + " char(1024) not null";
  const Schema schema = schema_of(text);
  const auto table = store.create(schema, {.encrypted = true});
  CtrCipher cipher = CtrCipher::derived(KeyBytes{}, table->salt(), kTableKeyInfo).value();
  std::vector<std::byte> rows(200 * schema.row_bytes(), std::byte{' '});
  for (std::uint64_t i = 0; i < 200; ++i) std::memcpy(rows.data() + i * schema.row_bytes(), &i, 8);
  base::Random random(1);
  ASSERT_EQ(append_encrypted(random, *table, cipher, rows), "");
  PipelineBuilder builder;
  builder.decrypt();
  builder.encrypt();
  const PipelineBuilder::AggregateOf sums[] = {{wire::Aggregate::sum, builder.column(0)}};
  builder.group_by({}, sums);
  const BatchProgram program(*check_pipeline(*builder.finish(), schema));
  const std::vector<std::string> lines = explain(program);
  EXPECT_EQ(lines.front(), "decrypt: AES-128-CTR");
  EXPECT_TRUE(program.is_smart());
  EXPECT_EQ(lines[lines.size() - 2], "encrypt: AES-128-CTR");
  const Outcome found = run_encrypted(random, program, table, cipher);
  ASSERT_EQ(found.error, "");
  EXPECT_EQ(read_value(program.pipeline().result.column(0), found.rows.data()).number, 19'900);
}

}  // namespace
}  // namespace espalier::table
