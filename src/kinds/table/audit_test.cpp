// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/audit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kinds/table/format/table.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A table of dates in two pages, whose bytes a test changes.
class AuditedTable : public ::testing::Test {
 protected:
  void SetUp() override {
    EXPECT_THAT(audit(*table), IsEmpty());
    const std::size_t rows = table->schema().rows_per_page() + 3;
    ASSERT_TRUE(table->append(std::vector<std::byte>(rows * table->schema().row_bytes())));
    ASSERT_EQ(table->pages(), 2u);
    EXPECT_THAT(audit(*table), IsEmpty());
  }
  [[nodiscard]] std::byte* header() { return store.pool.at(table->header_offset()); }
  [[nodiscard]] std::byte* page(std::uint64_t number) {
    return store.pool.at(wire::Ref{table->page(number).page}.offset());
  }
  /// Inverts a bit, audits, and puts it back.
  std::vector<std::string> audit_with_bit(std::byte* at) {
    *at ^= std::byte{1};
    std::vector<std::string> wrong = audit(*table);
    *at ^= std::byte{1};
    return wrong;
  }

  TableStore store;
  std::shared_ptr<Table> table = store.create(schema_of("d date not null, t text(4)"));
};

TEST_F(AuditedTable, ComplainsOfEachFieldThatIsWrong) {
  using Header = wire::TableHeader;
  using Page = wire::RowPageHeader;
  EXPECT_THAT(audit_with_bit(header() + offsetof(Header, table_id)),
              ElementsAre(HasSubstr("the header is of another object")));
  EXPECT_THAT(audit_with_bit(header() + offsetof(Header, magic)),
              ElementsAre(HasSubstr("no magic")));
  EXPECT_THAT(audit_with_bit(header() + offsetof(Header, row_bytes)),
              ElementsAre(HasSubstr("other bytes for a row")));
  EXPECT_THAT(audit_with_bit(page(1) + offsetof(Page, table_id)),
              ElementsAre("page 1 is of another object"));
  EXPECT_THAT(audit_with_bit(page(1) + offsetof(Page, page)),
              ElementsAre("page 1 has another number"));
  EXPECT_THAT(audit_with_bit(page(0) + offsetof(Page, first_row)),
              ElementsAre("page 0 begins with another row"));
  EXPECT_THAT(audit_with_bit(page(0) + offsetof(Page, row_bytes)),
              ElementsAre("page 0 has other bytes for a row"));
  EXPECT_THAT(audit_with_bit(page(1) + offsetof(Page, generation)),
              ElementsAre("page 1 is no buffer that is in use"));
  EXPECT_THAT(audit(*table), IsEmpty());
}

TEST_F(AuditedTable, ComplainsOfRowsThatNoAppendTakes) {
  std::byte* const row = page(1) + sizeof(wire::RowPageHeader) + table->schema().row_bytes();
  const std::int32_t far = wire::kDateMax + 1;
  std::memcpy(row, &far, sizeof far);
  const std::string number = std::to_string(table->schema().rows_per_page() + 1);
  EXPECT_THAT(audit(*table), ElementsAre("row " + number + " is none that the table takes"));
  std::memset(page(1) + sizeof(wire::RowPageHeader), 0xFF, 3 * table->schema().row_bytes());
  EXPECT_EQ(audit(*table).size(), 3u);
  std::memset(page(0) + sizeof(wire::RowPageHeader), 0xFF, 100 * table->schema().row_bytes());
  EXPECT_EQ(audit(*table).size(), 20u);  // and no more
}

TEST_F(AuditedTable, OneThatWasDroppedSaysSo) {
  table->set_dropped();
  EXPECT_THAT(audit(*table), IsEmpty());
}

}  // namespace
}  // namespace espalier::table
